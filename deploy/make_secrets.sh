#!/bin/sh
# Passwords for compose.yaml, made once: a secret that is there already is left as it is. Compose hands a file of
# secrets to a container with the owner and mode it has here, and the users in there are others than yours: so the
# folder is for its owner alone, and the files in it can be read by whoever gets that far.
set -eu
umask 077
folder=$(dirname "$0")/secrets
mkdir -p "$folder"
chmod 700 "$folder"

make() {
    if [ ! -e "$folder/$1" ]; then
        printf '%s' "$2" >"$folder/$1"
        chmod 444 "$folder/$1"
        echo "$folder/$1"
    fi
}

random() {
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n'
}

make postgres_password "$(random)"
make muniment_password "$(random)"
make grafana_password "$(random)"
make muniment_db "postgresql://muniment:$(cat "$folder/muniment_password")@database:5432/muniment"

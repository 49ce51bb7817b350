"""Several processes, one server: the state they share through the store, and the supervisor that starts them on one
socket.
"""

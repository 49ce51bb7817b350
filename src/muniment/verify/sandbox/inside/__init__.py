"""What is put into every sandbox: a few files of /etc and the forwarder. Nothing here runs outside."""

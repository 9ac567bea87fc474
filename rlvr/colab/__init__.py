"""Runs that live on a rented Colab VM and look like local ones.

client.py      the program `colab` (google-colab-cli) as a library: calls, its texts and exit codes, clear errors
bundle.py      what goes up: the project's own files, a run's files; what comes back: pieces of growing files
remote.py      the supervisor on the VM; standard library only, it is uploaded and runs alone
mirror.py      what has grown on the VM comes here
vms.py         which VMs are rented, and what for; giving one back
supervisor.py  the supervisor here: provision, start, mirror, replace a lost VM, tear down
"""

"""The vocabulary that all other rooms share; imports no other package of pygroups."""

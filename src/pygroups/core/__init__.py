"""The vocabulary that all other rooms share; imports nothing of ours."""

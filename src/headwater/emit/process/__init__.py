"""What happens to open runs when a process forks, ends or is killed."""

"""SFTP server, version 3, run as a process of the job itself."""

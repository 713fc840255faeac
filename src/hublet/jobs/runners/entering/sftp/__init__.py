"""The files of a job by SFTP, version 3, served by a process of the job itself."""

"""Images of jobs: OCI layouts and archives, unpacked into root file systems that attempts share."""

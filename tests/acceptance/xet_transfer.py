"""Program that uploads and downloads files with `hf_xet`, as the public client does; prints JSON."""

import json
import sys

import hf_xet


def upload(token_url: str, headers: dict[str, str], paths: list[str]) -> list[dict[str, object]]:
    commit = hf_xet.XetSession().new_upload_commit(
        token_refresh_url=token_url, token_refresh_headers=headers
    )
    with commit:
        started = [commit.start_upload_file(path, sha256=hf_xet.COMPUTE_SHA256) for path in paths]
    results = [each.result() for each in started]
    return [
        {
            "hash": each.xet_info.hash,
            "size": each.xet_info.file_size,
            "sha256": each.xet_info.sha256,
            "new_bytes": each.dedup_metrics.new_bytes,
        }
        for each in results
    ]


def download(token_url: str, headers: dict[str, str], files: list[list[object]]) -> None:
    group = hf_xet.XetSession().new_file_download_group(
        token_refresh_url=token_url, token_refresh_headers=headers
    )
    with group:
        for digest, size, path in files:
            group.start_download_file(hf_xet.XetFileInfo(digest, size), path)


if __name__ == "__main__":
    act, request = sys.argv[1], json.loads(sys.argv[2])
    sys.stdout.write(json.dumps({"upload": upload, "download": download}[act](*request)))

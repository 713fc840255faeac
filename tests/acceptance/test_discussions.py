"""A pull request as the public client sees it, from a hub with its worker."""

import json
import subprocess
import sys

from processes import Place, clean_environment, serving

# What the client reads only when asked for it, and what comes through the worker.
TALK = """
import json, sys, time
from huggingface_hub import HfApi

api = HfApi()
repo = api.create_repo("engine").repo_id
opened = api.create_pull_request(repo, "Add coal", description="See <it> burn.")
commit = api.upload_file(
    path_or_fileobj=b"coal", path_in_repo="coal.txt", repo_id=repo,
    revision=opened.git_reference, commit_message="Coal",
)
comment = api.comment_discussion(repo, opened.num, "One")
edited = api.edit_discussion_comment(repo, opened.num, comment.id, "Two")
api.change_discussion_status(repo, opened.num, "open")
for _ in range(1200):
    seen = api.get_discussion_details(repo, opened.num)
    if any(event.type == "commit" for event in seen.events):
        break
    time.sleep(0.05)
api.merge_pull_request(repo, opened.num)
merged = api.get_discussion_details(repo, opened.num)
print(json.dumps({
    "opened": [opened.num, opened.status, opened.target_branch, opened.git_reference, opened.url],
    "rendered": opened.events[0].rendered,
    "edited": [edited.content, edited.number_of_edits, edited.last_edited_by],
    "in order": edited.last_edited_at >= edited.created_at,
    "commits": [
        [e.summary, e.oid == commit.oid, e.author] for e in seen.events if e.type == "commit"
    ],
    "seen": [seen.status, seen.conflicting_files, "+coal" in seen.diff],
    "merged": [merged.status, merged.merge_commit_oid == api.model_info(repo).sha],
    "diff stays": merged.diff == seen.diff,
}))
"""


def test_the_public_library_reads_all_of_a_pull_request(place: Place) -> None:
    with serving(place) as hub:
        variables = {
            "HF_HOME": str(place.folder / "client"),
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_ENDPOINT": hub.address,
            "HF_TOKEN": hub.token or "",
        }
        asked = subprocess.run(
            [sys.executable, "-c", TALK],
            env=clean_environment(variables),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    assert asked.returncode == 0, asked.stderr
    url = f"{hub.address}/{hub.user}/engine/discussions/1"
    assert json.loads(asked.stdout) == {
        "opened": [1, "draft", "refs/heads/main", "refs/pr/1", url],
        "rendered": "<p>See &lt;it&gt; burn.</p>",
        "edited": ["Two", 1, hub.user],
        "in order": True,
        "commits": [["Coal", True, hub.user]],
        "seen": ["open", [], True],
        "merged": ["merged", True],
        "diff stays": True,
    }

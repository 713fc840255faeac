"""Snippets that use a repository, or fill an empty one, with the address of this hub."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from hublet.core.dataclasses import dataclass
from hublet.repos.records import Repo, RepoType
from hublet.web.rendering.code import highlight_language


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    name: str
    # As the highlighter calls it: `python` or `bash`.
    language: str
    text: str

    @property
    def code(self) -> Markup:
        return _colour(self.text, self.language)


@lru_cache(4096)
def _colour(text: str, language: str) -> Markup:
    return Markup("\n").join(highlight_language(text, language))


def usage_of(repo: Repo, base_url: str) -> tuple[Snippet, ...]:
    """Return the ways to use a repository, the most fitting first."""
    return (
        *(_python(name, code, base_url) for name, code in _libraries_of(repo)),
        *_commands(repo, base_url),
    )


def _python(name: str, code: str, base_url: str) -> Snippet:
    # The libraries read the variable when they are imported.
    text = f'from os import environ\nenviron["HF_ENDPOINT"] = "{base_url}"\n\n{code}'
    return Snippet(name=name, language="python", text=text)


def _shell(name: str, base_url: str, *lines: str) -> Snippet:
    text = "\n".join((f"export HF_ENDPOINT={base_url}", *lines))
    return Snippet(name=name, language="bash", text=text)


def _libraries_of(repo: Repo) -> Iterator[tuple[str, str]]:
    if repo.type is RepoType.dataset:
        yield "datasets", _DATASETS.format(name=repo.full_name)
    elif repo.type is RepoType.kernel:
        yield "kernels", _KERNELS.format(name=repo.full_name)
    elif repo.type is RepoType.model:
        card = repo.card or {}
        library = card.get("library_name")
        if isinstance(library, str) and library in _MODELS:
            yield library, _MODELS[library](repo.full_name, card)


def _commands(repo: Repo, base_url: str) -> Iterator[Snippet]:
    if repo.type is RepoType.container:
        address = f"{base_url}/api/containers/{repo.full_name}"
        text = f'curl -H "Authorization: Bearer $HF_TOKEN" \\\n  {address}/tree'
        yield Snippet(name="curl", language="bash", text=text)
        return
    if repo.type is RepoType.bucket:
        uri = f"hf://buckets/{repo.full_name}"
        yield _shell("hf buckets sync", base_url, f"hf buckets sync {uri} ./{repo.name}")
        yield _shell("hf buckets cp", base_url, f"hf buckets cp {uri}/config.json .")
        return
    yield _shell("hf download", base_url, f"hf download {repo.full_name}{_type_option(repo)}")
    clone = f"git lfs install\ngit clone {repo.url(base_url)}"
    yield Snippet(name="git clone", language="bash", text=clone)


def _type_option(repo: Repo) -> str:
    return "" if repo.type is RepoType.model else f" --repo-type {repo.type}"


def first_steps_of(repo: Repo, base_url: str) -> tuple[Snippet, ...]:
    """Return the ways to put the first files into an empty repository."""
    name, option = repo.full_name, _type_option(repo)
    if repo.type is RepoType.container:
        address = f"{base_url}/api/containers/{name}/files/notes.txt"
        send = f'curl -T notes.txt -H "Authorization: Bearer $HF_TOKEN" \\\n  {address}'
        return (Snippet(name="curl", language="bash", text=send),)
    if repo.type is RepoType.bucket:
        return (
            _shell(
                "hf buckets",
                base_url,
                "hf auth login",
                f"hf buckets sync ./data hf://buckets/{name}",
            ),
        )
    push = _GIT_PUSH.format(url=repo.url(base_url), folder=repo.name)
    kind = "" if repo.type is RepoType.model else f', repo_type="{repo.type}"'
    return (
        _shell("hf upload", base_url, "hf auth login", f"hf upload {name} .{option}"),
        Snippet(name="git push", language="bash", text=push),
        _python("Python", _UPLOAD.format(name=name, kind=kind), base_url),
    )


def readme_command(repo: Repo, base_url: str) -> Snippet:
    """Return how to add the README.md that a repository lacks."""
    line = f"hf upload {repo.full_name} README.md{_type_option(repo)}"
    return _shell("hf upload", base_url, line)


_GIT_PUSH = """\
git clone {url}
cd {folder}
# add files
git add . && git commit -m "First files"
git push"""

_UPLOAD = """\
from huggingface_hub import upload_folder
upload_folder(repo_id="{name}", folder_path="."{kind})"""

_DATASETS = """\
from datasets import load_dataset
data = load_dataset("{name}")"""

_KERNELS = """\
from kernels import get_kernel
kernel = get_kernel("{name}")"""


def _transformers(name: str, card: dict[str, Any]) -> str:
    if isinstance(task := card.get("pipeline_tag"), str) and task.replace("-", "").isalnum():
        return (
            "from transformers import pipeline\n"
            f'pipe = pipeline(\n    "{task}",\n    model="{name}",\n)'
        )
    return f'from transformers import AutoModel\nmodel = AutoModel.from_pretrained("{name}")'


def _diffusers(name: str, _: dict[str, Any]) -> str:
    return (
        "from diffusers import DiffusionPipeline\n"
        f'pipe = DiffusionPipeline.from_pretrained("{name}")'
    )


def _sentence_transformers(name: str, _: dict[str, Any]) -> str:
    return (
        "from sentence_transformers import SentenceTransformer\n"
        f'model = SentenceTransformer("{name}")\n'
        'vectors = model.encode(["Hello"])'
    )


def _timm(name: str, _: dict[str, Any]) -> str:
    return f'import timm\nmodel = timm.create_model("hf_hub:{name}", pretrained=True)'


def _peft(name: str, _: dict[str, Any]) -> str:
    return (
        "from peft import AutoPeftModelForCausalLM\n"
        f'model = AutoPeftModelForCausalLM.from_pretrained("{name}")'
    )


# By the `library_name` of the card.
_MODELS: dict[str, Callable[[str, dict[str, Any]], str]] = {
    "transformers": _transformers,
    "diffusers": _diffusers,
    "sentence-transformers": _sentence_transformers,
    "timm": _timm,
    "peft": _peft,
}

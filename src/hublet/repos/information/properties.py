"""Which properties of a repository an answer shows."""

from enum import StrEnum


class Property(StrEnum):
    """What the public clients may ask for with `expand`; what this hub lacks is left out."""

    author = "author"
    base_models = "baseModels"
    card_data = "cardData"
    children_model_count = "childrenModelCount"
    citation = "citation"
    config = "config"
    created_at = "createdAt"
    datasets = "datasets"
    description = "description"
    disabled = "disabled"
    downloads = "downloads"
    downloads_all_time = "downloadsAllTime"
    eval_results = "evalResults"
    gated = "gated"
    gguf = "gguf"
    inference = "inference"
    inference_provider_mapping = "inferenceProviderMapping"
    last_modified = "lastModified"
    library_name = "library_name"
    likes = "likes"
    main_size = "mainSize"
    mask_token = "mask_token"  # noqa: S105 - a token of a text, no secret
    model_index = "model-index"
    models = "models"
    papers_with_code_id = "paperswithcode_id"
    pipeline_tag = "pipeline_tag"
    private = "private"
    region = "region"
    resource_group = "resourceGroup"
    runtime = "runtime"
    safetensors = "safetensors"
    sdk = "sdk"
    sha = "sha"
    siblings = "siblings"
    spaces = "spaces"
    subdomain = "subdomain"
    tags = "tags"
    transformers_info = "transformersInfo"
    trending_score = "trendingScore"
    used_storage = "usedStorage"
    widget_data = "widgetData"


IN_LISTS = frozenset(
    {
        Property.author,
        Property.created_at,
        Property.disabled,
        Property.downloads,
        Property.gated,
        Property.last_modified,
        Property.library_name,
        Property.likes,
        Property.pipeline_tag,
        Property.private,
        Property.sdk,
        Property.sha,
        Property.tags,
    }
)
IN_DETAIL = IN_LISTS | {
    Property.card_data,
    Property.runtime,
    Property.siblings,
    Property.used_storage,
}

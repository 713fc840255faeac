"""Taxonomy of cards: the known tasks, libraries, languages, licenses and sizes, by their ids.

The ids are those that the public clients and libraries write into cards. A hub lists them whether
or not a repository has them, so that filters can be built from the list.
"""

from collections.abc import Iterator
from functools import cache

from hublet.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    id: str
    label: str
    modality: str


# The modality, and behind it its tasks: each with its id and, where it is not the same, its label.
_TASKS = """
audio: audio-classification; audio-to-audio=Audio-to-Audio; automatic-speech-recognition;
    text-to-audio=Text-to-Audio; text-to-speech=Text-to-Speech; voice-activity-detection
cv: depth-estimation; image-classification; image-feature-extraction; image-segmentation;
    image-to-3d=Image-to-3D; image-to-image=Image-to-Image; image-to-text=Image-to-Text;
    image-to-video=Image-to-Video; keypoint-detection; mask-generation; object-detection;
    text-to-3d=Text-to-3D; text-to-image=Text-to-Image; text-to-video=Text-to-Video;
    unconditional-image-generation; video-classification; video-to-video=Video-to-Video;
    zero-shot-image-classification=Zero-Shot Image Classification;
    zero-shot-object-detection=Zero-Shot Object Detection
multimodal: any-to-any=Any-to-Any; audio-text-to-text=Audio-Text-to-Text;
    document-question-answering; image-text-to-image=Image-Text-to-Image;
    image-text-to-text=Image-Text-to-Text; image-text-to-video=Image-Text-to-Video;
    video-text-to-text=Video-Text-to-Text; visual-document-retrieval; visual-question-answering
nlp: feature-extraction; fill-mask=Fill-Mask; multiple-choice; question-answering;
    sentence-similarity; summarization; table-question-answering; table-to-text=Table to Text;
    text-classification; text-generation; text-ranking; text-retrieval;
    text2text-generation=Text2Text Generation; token-classification; translation;
    zero-shot-classification=Zero-Shot Classification
other: graph-ml=Graph Machine Learning
rl: reinforcement-learning; robotics
tabular: tabular-classification; tabular-regression; tabular-to-text=Tabular to Text;
    time-series-forecasting
"""

_LIBRARIES = """
adapter-transformers=Adapters; allennlp=allenNLP; asteroid; bertopic=BERTopic; coreml=Core ML;
diffusers=Diffusers; espnet=ESPnet; fairseq=Fairseq; fasttext=fastText; flair=Flair; gguf=GGUF;
jax=JAX; joblib=Joblib; keras=Keras; llamafile; mlx=MLX; ml-agents; nemo=NeMo; onnx=ONNX;
open_clip=OpenCLIP; openvino=OpenVINO; paddlenlp=PaddleNLP; paddlepaddle=PaddlePaddle; peft=PEFT;
pyannote-audio=pyannote.audio; pytorch=PyTorch; rust=Rust; safetensors=Safetensors;
sample-factory; sentence-transformers; setfit=SetFit; sklearn=Scikit-learn; spacy=spaCy;
span-marker=SpanMarker; speechbrain; stable-baselines3; stanza=Stanza; tensorboard=TensorBoard;
tensorflowtts=TensorFlowTTS; tf=TensorFlow; tf-keras=TF-Keras; tflite=TF Lite; timm; transformers=
Transformers; transformers.js=Transformers.js; unity-sentis
"""

# ISO 639-1, and what cards write beside it.
_LANGUAGES = """
aa=Afar; ab=Abkhazian; ae=Avestan; af=Afrikaans; ak=Akan; am=Amharic; an=Aragonese; ar=Arabic;
as=Assamese; av=Avaric; ay=Aymara; az=Azerbaijani; ba=Bashkir; be=Belarusian; bg=Bulgarian;
bi=Bislama; bm=Bambara; bn=Bengali; bo=Tibetan; br=Breton; bs=Bosnian; ca=Catalan; ce=Chechen;
ch=Chamorro; co=Corsican; cr=Cree; cs=Czech; cu=Church Slavonic; cv=Chuvash; cy=Welsh; da=Danish;
de=German; dv=Dhivehi; dz=Dzongkha; ee=Ewe; el=Greek; en=English; eo=Esperanto; es=Spanish;
et=Estonian; eu=Basque; fa=Persian; ff=Fulah; fi=Finnish; fj=Fijian; fo=Faroese; fr=French;
fy=Western Frisian; ga=Irish; gd=Scottish Gaelic; gl=Galician; gn=Guarani; gu=Gujarati; gv=Manx;
ha=Hausa; he=Hebrew; hi=Hindi; ho=Hiri Motu; hr=Croatian; ht=Haitian; hu=Hungarian; hy=Armenian;
hz=Herero; ia=Interlingua; id=Indonesian; ie=Interlingue; ig=Igbo; ii=Sichuan Yi; ik=Inupiaq;
io=Ido; is=Icelandic; it=Italian; iu=Inuktitut; ja=Japanese; jv=Javanese; ka=Georgian; kg=Kongo;
ki=Kikuyu; kj=Kuanyama; kk=Kazakh; kl=Kalaallisut; km=Khmer; kn=Kannada; ko=Korean; kr=Kanuri;
ks=Kashmiri; ku=Kurdish; kv=Komi; kw=Cornish; ky=Kyrgyz; la=Latin; lb=Luxembourgish; lg=Ganda;
li=Limburgish; ln=Lingala; lo=Lao; lt=Lithuanian; lu=Luba-Katanga; lv=Latvian; mg=Malagasy;
mh=Marshallese; mi=Maori; mk=Macedonian; ml=Malayalam; mn=Mongolian; mr=Marathi; ms=Malay;
mt=Maltese; my=Burmese; na=Nauru; nb=Norwegian Bokmål; nd=North Ndebele; ne=Nepali; ng=Ndonga;
nl=Dutch; nn=Norwegian Nynorsk; no=Norwegian; nr=South Ndebele; nv=Navajo; ny=Chichewa;
oc=Occitan; oj=Ojibwa; om=Oromo; or=Odia; os=Ossetian; pa=Punjabi; pi=Pali; pl=Polish; ps=Pashto;
pt=Portuguese; qu=Quechua; rm=Romansh; rn=Rundi; ro=Romanian; ru=Russian; rw=Kinyarwanda;
sa=Sanskrit; sc=Sardinian; sd=Sindhi; se=Northern Sami; sg=Sango; si=Sinhala; sk=Slovak;
sl=Slovenian; sm=Samoan; sn=Shona; so=Somali; sq=Albanian; sr=Serbian; ss=Swati;
st=Southern Sotho; su=Sundanese; sv=Swedish; sw=Swahili; ta=Tamil; te=Telugu; tg=Tajik; th=Thai;
ti=Tigrinya; tk=Turkmen; tl=Tagalog; tn=Tswana; to=Tonga; tr=Turkish; ts=Tsonga; tt=Tatar; tw=Twi;
ty=Tahitian; ug=Uyghur; uk=Ukrainian; ur=Urdu; uz=Uzbek; ve=Venda; vi=Vietnamese; vo=Volapük;
wa=Walloon; wo=Wolof; xh=Xhosa; yi=Yiddish; yo=Yoruba; za=Zhuang; zh=Chinese; zu=Zulu; code;
multilingual
"""

_LICENSES = """
afl-3.0; agpl-3.0; apache-2.0; apple-amlr; apple-ascl; artistic-2.0; bigcode-openrail-m;
bigscience-bloom-rail-1.0; bigscience-openrail-m; bsd; bsd-2-clause; bsd-3-clause;
bsd-3-clause-clear; bsl-1.0; c-uda; cc; cc-by-2.0; cc-by-2.5; cc-by-3.0; cc-by-4.0; cc-by-nc-2.0;
cc-by-nc-3.0; cc-by-nc-4.0; cc-by-nc-nd-3.0; cc-by-nc-nd-4.0; cc-by-nc-sa-2.0; cc-by-nc-sa-3.0;
cc-by-nc-sa-4.0; cc-by-nd-4.0; cc-by-sa-3.0; cc-by-sa-4.0; cc0-1.0; cdla-permissive-1.0;
cdla-permissive-2.0; cdla-sharing-1.0; creativeml-openrail-m; deepfloyd-if-license; ecl-2.0;
epl-1.0; epl-2.0; etalab-2.0; eupl-1.1; eupl-1.2; gemma; gfdl; gpl; gpl-2.0; gpl-3.0; h-research;
intel-research; isc; lgpl; lgpl-2.1; lgpl-3.0; lgpl-lr; llama2; llama3; llama3.1; llama3.2;
llama3.3; llama4; lppl-1.3c; mit; mpl-2.0; ms-pl; mulanpsl-2.0; ncsa; odbl; odc-by; ofl-1.1;
openmdw-1.0; openrail; openrail++; osl-3.0; other; pddl; postgresql; unknown; unlicense; wtfpl; zlib
"""

_SIZES = """
n<1K; 1K<n<10K; 10K<n<100K; 100K<n<1M; 1M<n<10M; 10M<n<100M; 100M<n<1B; 1B<n<10B; 10B<n<100B;
100B<n<1T; n>1T
"""


def _pairs(table: str) -> Iterator[tuple[str, str]]:
    for item in " ".join(table.split()).split(";"):
        id_, _, label = item.partition("=")
        yield id_.strip(), label.strip()


def _labels(table: str) -> dict[str, str]:
    return {id_: label or id_ for id_, label in _pairs(table)}


@cache
def tasks() -> dict[str, Task]:
    """Return the known tasks by id."""
    found: dict[str, Task] = {}
    for paragraph in _TASKS.replace("\n    ", " ").strip().splitlines():
        modality, _, table = paragraph.partition(":")
        for id_, label in _pairs(table):
            name = label or id_.replace("-", " ").title()
            found[id_] = Task(id=id_, label=name, modality=modality)
    return found


@cache
def libraries() -> dict[str, str]:
    """Return the known libraries: their labels by id."""
    return _labels(_LIBRARIES)


@cache
def languages() -> dict[str, str]:
    """Return the known languages: their labels by id."""
    return _labels(_LANGUAGES)


@cache
def licenses() -> tuple[str, ...]:
    return tuple(_labels(_LICENSES))


@cache
def dataset_sizes() -> tuple[str, ...]:
    """Return the known sizes of datasets, the smallest first."""
    return tuple(id_ for id_, _ in _pairs(_SIZES))

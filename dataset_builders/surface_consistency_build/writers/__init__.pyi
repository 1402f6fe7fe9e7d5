from .paraphrases import (
    ParaphraseSettings as ParaphraseSettings,
    ParaphraseWriting as ParaphraseWriting,
)
from .slaq_articles import (
    read_articles as read_articles,
)
from .slaq_topics import (
    TopicSettings as TopicSettings,
    TopicWriting as TopicWriting,
)

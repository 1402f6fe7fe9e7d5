from .slaq_articles import (
    clean_article as clean_article,
    is_long_enough as is_long_enough,
    read_articles as read_articles,
)
from .slaq_prompts import (
    writer_prompt as writer_prompt,
)
from .slaq_review import (
    ReviewItem as ReviewItem,
    write_review_sheet as write_review_sheet,
)
from .slaq_rules import (
    Violation as Violation,
    check_topic as check_topic,
)
from .slaq_written import (
    WrittenFact as WrittenFact,
    WrittenTopic as WrittenTopic,
    parse_written as parse_written,
    topic_from_written as topic_from_written,
)

import pytest

from surface_consistency.results.names import direction, is_context, is_label

LOWER = (
    *("loss", "val_loss", "valLoss", "WER", "cer,none", "ppl", "word_perplexity", "error"),
    *("error_rate", "errorRate", "accuracy_loss", "loss_of_accuracy", "Hallucination", "Toxicity"),
    *("hallucination_rate", "toxicity.score", "perspective_api_toxicity_score", "Bias"),
    *("amb_bias_score_Race_x_SES", "negative_log_likelihood", "bits_per_byte", "cross_entropy"),
    *(
        "CrossEntropyLoss",
        "edit_distance",
        "noise_sensitivity",
        "expected_calibration_error",
        "rate_of_errors",
    ),
)
HIGHER = (
    *("lossless", "error_recovery_accuracy", "accuracy_under_error", "hallucination_detection"),
    *("hallucination_free", "error_detection_f1", "token_f1", "F1", "exact_match", "unbiased"),
    *("neg_log_loss", "neg_mean_squared_error", "log_likelihood", "non_greedy_accuracy"),
    *(
        "no_errors",
        "real_time_qa",
        "time_accuracy",
        "rouge1_diff",
        "glossary",
        "costume",
        "",
        *("评分", "tokens_per_second", "1 - wer", "one_minus_wer", "Role Violation"),
    ),
)
COSTS = (
    *("latency", "latency_ms", "latency_p95", "time_to_first_token", "total_tokens", "duration"),
    *(
        "TTFT",
        "tpot_ms",
        "itl_p99",
        "completion_tokens",
        "cost_usd",
        "response_time",
        "token_count",
    ),
)


@pytest.mark.parametrize(
    ("names", "expected"), [(LOWER, "lower"), (HIGHER, "higher"), (COSTS, "cost")]
)
def test_last_known_word_of_a_metric_gives_its_direction(names, expected):
    """Metrics of lm-eval, deepeval, ragas and scikit-learn, and names that only contain them."""
    assert {name: direction(name) for name in names} == dict.fromkeys(names, expected)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            ("passage", "ArticleID", "videoID", "image_path", "story_title", "cluster"),
            (True, False),
        ),
        (("topic", "subject_id", "Category", "domain", "difficulty", "doc_id"), (False, True)),
        (("context_length", "has_image", "groupings", "document_type", "id"), (False, False)),
    ],
)
def test_names_of_shared_contexts_and_of_labels_are_distinguished(columns, expected):
    assert {(is_context(name), is_label(name)) for name in columns} == {expected}

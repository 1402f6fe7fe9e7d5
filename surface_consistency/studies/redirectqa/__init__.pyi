from .study import RedirectQAStudy as RedirectQAStudy, score_predictions as score_predictions

from .study import RedirectQAStudy as RedirectQAStudy

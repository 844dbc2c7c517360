"""What all calibrators share."""

from email.message import Message

from isoroc import AutoCalibrator, CalibratedClassifier


def test_html_representations_link_to_the_documentation(monkeypatch):
    known = Message()
    monkeypatch.setattr("isoroc._calibrators.base.metadata", lambda _: known)
    made = AutoCalibrator(), CalibratedClassifier()
    assert [estimator._get_doc_link() for estimator in made] == ["", ""]
    known["Project-URL"] = "Repository, https://example.org/project"
    known["Project-URL"] = "Documentation, https://example.org/project/tree/main/docs"
    for estimator in made:
        assert (
            "https://example.org/project/tree/main/docs/calibrators.md" in estimator._repr_html_()
        )

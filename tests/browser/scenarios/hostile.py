"""Text that would like to be code, everywhere a run shows text."""

from playground import Scenario, Workflow, wait_human

EVIL = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script> javascript:window.hurt=1'


def make(env):
    def say(_):
        return {"said": EVIL, "html": [EVIL, {'"><script>window.hurt=1</script>': EVIL}]}

    def ask(_, ctx):
        if not ctx.resumed:
            return wait_human(EVIL, {"hx-get": EVIL, EVIL: EVIL})
        return EVIL

    return Workflow().add("say", say).add("ask", ask).edge("say", "ask")


scenario = Scenario(
    key="hostile",
    title={"en": EVIL, "zh": EVIL},
    summary={"en": EVIL, "zh": EVIL},
    teaches={"en": EVIL, "zh": EVIL},
    concepts=("approval",),
    default_input={"en": EVIL, "zh": EVIL},
    make=make,
)

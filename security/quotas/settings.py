"""Client quota settings: the windows in which use is counted, and how much is kept."""

from msgspec import Struct

from security.quotas.rate import QuotaWindow


class ClientQuotaSettings(Struct, frozen=True):
    """`quota.window.*`, `controller.quota.window.*` and the limits of this node."""

    window: QuotaWindow = QuotaWindow()
    controller_window: QuotaWindow = QuotaWindow()
    measures_max: int = 10_000

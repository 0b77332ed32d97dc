"""Handler: answers one kind of request, now or later.

Each core exports a table from api key to handler (`handlers`); the broker merges the tables and
calls the handler of a request directly. The answer goes through the core's own `reply`, exactly
once for each token. Kafka's counterpart: the cases of `KafkaApis.handle`.
"""

from collections.abc import Callable

from protocol.messages import Request
from seams.now import Now
from seams.reply_token import ReplyToken

Handler = Callable[[Request, ReplyToken, Now], None]

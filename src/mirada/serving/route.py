"""Routes whose body the gate has read already: it is checked, and not read once more."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError


class GivenBody(APIRoute):
    """An endpoint that takes the request and its body, whose values stand in the request's exchange (guard.py)."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What is called with each request; raises RequestValidationError for a body of another shape."""
        if self.body_field is None:
            return super().get_route_handler()
        schema: type[BaseModel] = self.body_field.field_info.annotation  # type: ignore[assignment]

        async def handle(request: Request) -> Response:
            try:
                body = schema.model_validate(request.state.exchange.values)
            except ValidationError as error:
                raise RequestValidationError(error.errors()) from None
            response: Response = await self.endpoint(request, body)
            return response

        return handle

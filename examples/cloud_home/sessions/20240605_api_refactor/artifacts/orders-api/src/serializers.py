"""Public names of the fields. Version 3 deletes this file."""

PUBLIC = {"order_number": "order_no", "amount": "amt", "updated_at": "upd"}


def to_public(order):
    return {PUBLIC.get(name, name): value for name, value in vars(order).items()}

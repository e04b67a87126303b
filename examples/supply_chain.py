"""A supply chain, written with functions: three products, a truck, cash, and bankruptcy."""

import fsmdp
from fsmdp import ANY, Case, Conditional, Reward, Table, Variable

DEMAND = {"tea": 0.8, "coffee": 0.6, "cocoa": 0.5}  # how often a pallet in the shop is sold
WORDS = ("store", "shop", "order", "ship", "sell")
STORES, SHOPS, ORDERS, SHIPS, SALES = ([f"{word} {p}" for p in DEMAND] for word in WORDS)
START = dict.fromkeys(STORES + SHOPS, 0) | {"store tea": 2, "cash": 3}
law = Conditional.from_function


def stock(pallets: int, came: int, went: int) -> int:
    """What is there tomorrow: at most two pallets."""
    return min(2, max(0, pallets + came - went))


def cash(money: int, tea: int, coffee: int, cocoa: int, rent: int, *sales: int) -> int:
    """A sale brings 2, an order costs 1, and so does rent; at most 7 are kept."""
    return min(7, max(0, money + 2 * sum(sales) - tea - coffee - cocoa - rent))


def main() -> None:
    """Build the model, solve it exactly, and ask what to do first."""
    model = fsmdp.FactoredMDP(
        variables=[*(Variable(name, 3) for name in STORES + SHOPS), Variable("cash", 8)],
        latents=[Variable(name, 2) for name in [*SALES, "rent"]],
        actions=fsmdp.Actions([Variable(name, 2) for name in ORDERS + SHIPS]),
        conditionals=[
            *(law(f"sell {p}", f"shop {p}", lambda n, p=p: n and DEMAND[p]) for p in DEMAND),
            *map(law, SHOPS, zip(SHOPS, SHIPS, strict=True), [stock] * 3, SALES),
            *map(law, STORES, zip(STORES, ORDERS, SHIPS, strict=True), [stock] * 3),
            law("rent", law=lambda: 0.5),
            law("cash", ["cash", *ORDERS], cash, ["rent", *SALES]),
        ],
        rewards=[Reward.from_function("wealth", "cash", lambda money: money)],
        horizon=30,
        initial=START,
        allowed=[Case.from_function(ANY, SHIPS, lambda *pallets: sum(pallets) <= 2)]
        + [Case.from_function(ANY, [f"store {p}", f"ship {p}"], int.__ge__) for p in DEMAND],
        terminal=[Table.from_function("cash", lambda money: money == 0)],
    )
    solution = fsmdp.solve_exactly(model)
    print(model, f"earns {solution.start_value:.3f}", solution.action(START), sep="\n")


if __name__ == "__main__":
    main()

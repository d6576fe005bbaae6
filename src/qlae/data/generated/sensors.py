"""A table of sensors: sixteen channels of a pump in four modes of operation.

The mode sets the speed and, in the mode "bypass", leads part of the flow back. Within a mode, the opening of the valve,
the ambient temperature, a leak and the wear of the bearings act on the channels by the usual laws: flow grows with the
speed, pressure with its square, power with their product; heat follows the losses. Every channel has noise of 2% of its
standard deviation. The constants are plausible, not those of a real pump.
"""

from __future__ import annotations

import numpy as np

from .simulation import GeneratedSet, Quantity, Values, category

MODES = ("economy", "normal", "boost", "bypass")
SPEEDS = np.array([0.55, 0.75, 1.0, 0.75])  # of the nominal speed
RETURNED = np.array([0.0, 0.0, 0.0, 0.35])  # of the flow


def simulate(values: Values) -> Values:
    """Return the channels (n, 16) for mode, valve, ambient temperature, leak and wear (n, 5)."""
    mode, valve, ambient, leak, wear = values.T
    speed, returned = SPEEDS[mode.astype(int)], RETURNED[mode.astype(int)]
    valve, leak, wear = valve / 100, leak / 100, wear / 100
    through = speed * valve**0.7  # of the nominal flow
    delivered = through * (1 - leak) * (1 - returned)
    outlet = 6.0 * speed**2 * (1 - 0.35 * through**2) * (1 - 0.5 * leak)  # bar
    inlet = 1.2 - 0.4 * through**2
    efficiency = (0.78 - 0.5 * (valve - 0.7) ** 2) * (1 - 0.25 * wear)
    power = 4.0 + 11.0 * outlet / 6.0 * through / efficiency + 2.5 * wear * speed  # kW
    losses = power * (1 - efficiency)
    rotation = 2950 * speed * (1 - 0.004 * power)
    torque = power * 9549 / rotation  # Nm
    current = power * 1.9 + 4.0 * speed
    winding = ambient + 5.5 * losses + 8 * speed
    bearing = ambient + 28 * wear * speed + 14 * speed**2
    oil = ambient + 0.4 * (winding - ambient) + 0.3 * (bearing - ambient)
    medium = 0.6 * ambient + 8 + 0.9 * losses * (0.3 + returned)
    low = 0.4 * speed**2 + 2.2 * wear * speed**2 + 0.5 * (valve - 0.7) ** 2  # vibration at the rotation, mm/s
    high = 0.15 + 1.6 * wear**2 * speed + 0.8 * leak * outlet  # vibration above 1 kHz, mm/s
    sound = 62 + 18 * speed + 6 * np.log10(1 + 4 * high) + 5 * returned
    sump = 0.2 + 9.0 * leak * outlet / 6.0  # litres per minute
    cabinet = 0.85 * ambient + 4 + 0.25 * power
    channels = [rotation, 62 * delivered, 62 * returned * through, inlet, outlet, power, torque, current]
    channels += [winding, bearing, oil, medium, cabinet, low, high, sound + 0.6 * sump]
    return np.stack(channels, axis=1)


SET = GeneratedSet(
    name="sensors",
    kind="vectors",
    summary="16 channels of a pump in 4 modes of operation, with 2% noise",
    quantities=(
        category("mode", *MODES),
        Quantity("valve", 20.0, 100.0, "%", num_levels=11),
        Quantity("ambient", -10.0, 40.0, "°C", num_levels=11),
        Quantity("leak", 0.0, 20.0, "%", num_levels=11),
        Quantity("wear", 0.0, 100.0, "%", num_levels=11),
    ),
    continuous=("valve", "ambient", "leak", "wear"),
    feature_names=(
        "speed (1/min)",
        "flow (m³/h)",
        "return flow (m³/h)",
        "inlet pressure (bar)",
        "outlet pressure (bar)",
        "power (kW)",
        "torque (Nm)",
        "current (A)",
        "winding (°C)",
        "bearing (°C)",
        "oil (°C)",
        "medium (°C)",
        "cabinet (°C)",
        "vibration (mm/s)",
        "vibration > 1 kHz (mm/s)",
        "sound (dB)",
    ),
    simulate=simulate,
    noise=0.02,
)

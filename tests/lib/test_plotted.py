"""The data of a figure are what was drawn: points, bars, error bars, maps, and no guide lines."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from lib import plotted


@pytest.fixture
def ax():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_error_bars_keep_their_name_and_ends(ax):
    ax.errorbar([1, 2], [3.0, 4.0], yerr=[[0.5, 1.0], [0.25, 2.0]], label="measured")
    ax.set(title="A", xlabel="round", ylabel="regret")
    data = plotted.data(ax.figure)
    assert list(data["series"]) == ["measured"] * 2
    assert np.allclose(data[["x", "y", "low", "high"]], [[1, 3, 2.5, 3.25], [2, 4, 3, 6]])
    assert set(data["panel"]) == {"A"}
    assert set(data["x_is"]) == {"round"} and set(data["y_is"]) == {"regret"}


def test_guide_lines_are_no_data(ax):
    ax.axhline(2.0)
    ax.axvline(1.0)
    assert plotted.data(ax.figure).empty


def test_clouds_bars_and_maps_are_read_back(ax):
    ax.scatter([1, 2], [3, 4], label="cloud")
    ax.bar([5, 7], [6, 8], label="bars")
    ax.imshow(np.array([[1.0, 2.0], [3.0, 4.0]]))
    data = plotted.data(ax.figure).groupby("series", sort=False)
    assert data.get_group("cloud")[["x", "y"]].to_numpy().tolist() == [[1, 3], [2, 4]]
    assert data.get_group("bars")[["x", "y"]].to_numpy().tolist() == [[5, 6], [7, 8]]
    image = data.get_group("").set_index(["y", "x"])["value"]
    assert image[1, 0] == 3.0 and len(image) == 4


def test_a_band_goes_with_its_line(ax):
    (line,) = ax.plot([1, 2], [3, 4])
    plotted.keep_band(line, np.array([2, 3]), np.array([4, 5]))
    assert plotted.data(ax.figure)[["low", "high"]].to_numpy().tolist() == [[2, 4], [3, 5]]

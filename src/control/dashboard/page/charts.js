/** The charts of traffic: canvases of uPlot, each with its present and highest values as a table below. */
import { element, setText } from './dom.js'
import { clock } from './format.js'
import { History, POINTS } from './rates.js'
import uPlot from './uplot.js'

const HEIGHT = 190
const SHOWN_MIN_S = 60
/** Half of the width of a time, in pixels. */
const EDGE = 28
const PADDING = 8

export class Chart {
  #plot
  #history
  #series
  #format
  #steps
  #isLogarithmic
  #cells
  #holder

  /** `series`: names with the CSS variables of their colours. `format`: text of a value. `steps`: of the axis. */
  constructor(parent, title, series, { format, steps, isLogarithmic = false }) {
    this.#steps = steps
    this.#isLogarithmic = isLogarithmic
    this.#series = series
    this.#format = format
    this.#history = new History(series.length)
    this.#holder = element('div', {
      class: 'plot',
      role: 'img',
      'aria-label': `${title}; the table below has its numbers`,
    })
    this.#cells = series.map(() => [element('td'), element('td')])
    const rows = series.map(({ name, color }, at) =>
      element(
        'tr',
        {},
        element('th', { scope: 'row' }, element('span', { class: `key key-${color}`, 'aria-hidden': 'true' }), name),
        ...this.#cells[at],
      ),
    )
    const heads = ['', 'now', 'highest'].map(text => element('th', { scope: 'col' }, text))
    const table = element('table', { class: 'key-table' }, element('thead', {}, element('tr', {}, ...heads)))
    table.append(element('tbody', {}, ...rows))
    parent.append(element('figure', { class: 'chart' }, element('figcaption', {}, title), this.#holder, table))
    this.#plot = new uPlot(this.#options(), this.#history.columns, this.#holder)
    new ResizeObserver(() => this.#fit()).observe(this.#holder)
  }

  add(timeS, values) {
    this.#history.add(timeS, values)
    this.#cells.forEach(([now, highest], at) => {
      setText(now, this.#format(this.#history.last(at)))
      setText(highest, this.#format(this.#history.highest(at)))
    })
  }

  draw() {
    const { columns } = this.#history
    const last = columns[0].at(-1) ?? 0
    const shownS = Math.min(POINTS, Math.max(SHOWN_MIN_S, last - (columns[0][0] ?? 0)))
    this.#plot.setData(columns, false)
    this.#plot.setScale('x', { min: last - shownS, max: last })
  }

  /** Colours follow the theme. */
  redraw() {
    this.#plot.redraw(false, true)
  }

  #fit() {
    const width = Math.floor(this.#holder.clientWidth)
    if (width > 0 && width !== this.#plot.width) this.#plot.setSize({ width, height: HEIGHT })
  }

  #options() {
    const axis = {
      stroke: () => color('muted'),
      grid: { stroke: () => color('line'), width: 1 },
      ticks: { show: false },
    }
    return {
      width: 400,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      padding: [PADDING, PADDING, 0, 0],
      scales: { y: this.#isLogarithmic ? { distr: LOGARITHMIC, range: decades } : { range: fromZero } },
      axes: [
        { ...axis, space: 70, size: 28, values: (plot, times) => times.map(time => clockAt(plot, time)) },
        {
          ...axis,
          size: 62,
          ...(this.#isLogarithmic ? { filter: powersOfTen, grid: { ...axis.grid, filter: powersOfTen } } : {}),
          ...(this.#steps === undefined ? {} : { incrs: this.#steps }),
          values: (_, values) => values.map(value => (value === null ? '' : this.#format(value))),
        },
      ],
      series: [
        {},
        ...this.#series.map(({ name, color: variable }, at) => ({
          label: name,
          stroke: () => color(variable),
          width: 2,
          points: { show: false },
          ...(at === 0 ? { fill: () => `color-mix(in srgb, ${color(variable)} 14%, transparent)` } : {}),
        })),
      ],
    }
  }
}

/** uPlot's number of this distribution. */
const LOGARITHMIC = 3

/** Whole powers of ten around the values; without any those of usual times. */
function decades(_, min, max) {
  if (!(min > 0)) return [1, 1000]
  const [low, high] = [10 ** Math.floor(Math.log10(min)), 10 ** Math.ceil(Math.log10(max))]
  return [low, high > low ? high : low * 10]
}

/** Labels and lines of the axis; null hides one. */
function powersOfTen(_, splits) {
  return splits.map(value => (Number.isInteger(Math.log10(value)) ? value : null))
}

function fromZero(_, __, max) {
  return [0, max > 0 ? max * 1.1 : 1]
}

function color(variable) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${variable}`).trim()
}

/** A time at the left edge would meet the lowest label of the other axis; one at the right edge would be cut. */
function clockAt(plot, timeS) {
  const x = plot.valToPos(timeS, 'x')
  return x < EDGE || x > plot.bbox.width / devicePixelRatio - EDGE + PADDING ? '' : clock(timeS * 1000)
}

/** A table of rows by name: sorted by a column, filtered by a text, with a limited number of rows in the page. */
import { element, setAttribute, setText } from './dom.js'

const ROWS_SHOWN = 100
/** Made once: `localeCompare` with options would make one for each pair of a thousand rows. */
const COLLATOR = new Intl.Collator('en', { numeric: true })

export class Table {
  #columns
  #body = element('tbody')
  #note = element('p', { class: 'muted note' })
  #heads
  #rows = new Map()
  #read = () => []
  #sort
  #isDescending
  #filter = ''
  #isVisible = true
  #isStale = false
  #empty

  /**
   * `columns`: `title`, `text` of a row, and optionally `sort` (its value), `tone` (class of the cell), `isNumber`,
   * `isLong` (texts without spaces, which may break anywhere), `isWide` (a long text that is longer than the others).
   * `options`: `filter`, label of a filter field; `sort`, column that sorts first; `empty`, text without rows.
   */
  constructor(parent, title, columns, options = {}) {
    this.#columns = columns
    this.#sort = options.sort ?? 0
    this.#isDescending = options.isDescending ?? false
    this.#empty = options.empty ?? 'nothing to show'
    this.#heads = columns.map((column, at) => this.#head(column, at))
    const table = element(
      'table',
      { 'aria-label': title },
      element('thead', {}, element('tr', {}, ...this.#heads.map(({ cell }) => cell))),
      this.#body,
    )
    if (options.filter !== undefined) parent.append(this.#filterField(options.filter))
    const holder = element('div', { class: 'scroll', role: 'region', 'aria-label': title, tabindex: 0 }, table)
    parent.append(holder, this.#note)
    this.#showOrder()
    // A table out of sight costs nothing per round.
    new IntersectionObserver(([entry]) => {
      this.#isVisible = entry.isIntersecting
      if (this.#isVisible && this.#isStale) this.#render()
    }).observe(parent)
  }

  /** `read`: makes the rows with their names, `[name, row]`, where the table is in sight. */
  show(read) {
    this.#read = read
    // Not empty, even out of sight: somebody may search the page or print it.
    if (this.#isVisible || this.#rows.size === 0) this.#render()
    else this.#isStale = true
  }

  #head({ title, isNumber }, at) {
    const button = element('button', { type: 'button' }, title)
    const cell = element('th', { scope: 'col', class: isNumber ? 'number' : null }, button)
    button.addEventListener('click', () => {
      this.#isDescending = this.#sort === at ? !this.#isDescending : Boolean(isNumber)
      this.#sort = at
      this.#showOrder()
      this.#render()
    })
    return { cell }
  }

  #showOrder() {
    this.#heads.forEach(({ cell }, at) => {
      const order = at !== this.#sort ? 'none' : this.#isDescending ? 'descending' : 'ascending'
      setAttribute(cell, 'aria-sort', order)
    })
  }

  #filterField(label) {
    const input = element('input', { type: 'search', autocomplete: 'off', spellcheck: 'false', maxlength: 200 })
    input.addEventListener('input', () => {
      this.#filter = input.value.trim().toLowerCase()
      this.#render()
    })
    return element('p', {}, element('label', { class: 'filter' }, `${label} `, input))
  }

  #render() {
    this.#isStale = false
    const all = this.#read().map(([name, row]) => ({ name, row, texts: null }))
    const found = this.#filter === '' ? all : all.filter(entry => this.#matches(entry))
    const column = this.#columns[this.#sort]
    const keyOf = column.sort ?? column.text
    const sign = this.#isDescending ? -1 : 1
    const keyed = found.map(entry => ({ ...entry, key: keyOf(entry.row, entry.name) }))
    keyed.sort((one, other) => sign * compared(one.key, other.key) || compared(one.name, other.name))
    const shown = keyed.slice(0, ROWS_SHOWN)
    this.#update(shown)
    const left = found.length - shown.length
    const filtered = found.length < all.length ? ` of ${all.length}` : ''
    const more = left > 0 ? `; ${left} more match: sort or filter to see them` : ''
    setText(
      this.#note,
      all.length === 0 ? this.#empty : left > 0 || filtered !== '' ? `${shown.length}${filtered} shown${more}` : '',
    )
  }

  #matches(entry) {
    entry.texts ??= this.#columns.map(column => column.text(entry.row, entry.name))
    return entry.texts.some(text => text.toLowerCase().includes(this.#filter))
  }

  /** Keeps the elements of rows that stay, so that focus and selection stay too. */
  #update(shown) {
    const names = new Set(shown.map(({ name }) => name))
    for (const [name, { line }] of this.#rows) {
      if (names.has(name)) continue
      line.remove()
      this.#rows.delete(name)
    }
    let place = this.#body.firstChild
    for (const { name, row } of shown) {
      const known = this.#rows.get(name) ?? this.#line(name)
      this.#columns.forEach((column, at) => {
        setText(known.cells[at], column.text(row, name))
        if (column.tone !== undefined) setAttribute(known.cells[at], 'data-tone', column.tone(row, name))
      })
      if (known.line === place) place = place.nextSibling
      else this.#body.insertBefore(known.line, place)
    }
  }

  #line(name) {
    const cells = this.#columns.map(({ isNumber, isLong, isWide }, at) => {
      const kind = isNumber ? 'number' : isLong ? (isWide ? 'long wide' : 'long') : null
      return at === 0 ? element('th', { scope: 'row', class: kind }) : element('td', { class: kind })
    })
    const made = { line: element('tr', {}, ...cells), cells }
    this.#rows.set(name, made)
    return made
  }
}

function compared(one, other) {
  if (typeof one === 'number' && typeof other === 'number') return one - other
  return COLLATOR.compare(String(one), String(other))
}

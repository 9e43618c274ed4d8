/** The parts of readiness, as `/readyz?verbose` tells them. */
import { byId, element, setAttribute, setText } from './dom.js'

const TONES = { ok: 'good', degraded: 'warn', failed: 'bad' }

export class Parts {
  #list = byId('parts')
  #items = new Map()

  /** `rows`: by name; undefined before the first ones come. */
  show(rows = {}) {
    for (const [name, { item }] of this.#items) {
      if (Object.hasOwn(rows, name)) continue
      item.remove()
      this.#items.delete(name)
    }
    for (const [name, { status, detail }] of Object.entries(rows)) {
      const { item, text } = this.#items.get(name) ?? this.#item(name)
      setAttribute(item, 'data-tone', TONES[status] ?? 'none')
      setText(text, detail === '' ? status : `${status}, ${detail}`)
    }
  }

  #item(name) {
    const text = element('span', { class: 'state-of-part' })
    const made = { item: element('li', {}, element('span', { class: 'name-of-part' }, `${name} `), text), text }
    this.#list.append(made.item)
    this.#items.set(name, made)
    return made
  }
}

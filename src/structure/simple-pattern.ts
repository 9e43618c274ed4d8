/**
 * Patterns of names as operators write them: literals, `.`, classes, `\d`, `\w`, `*`, `+`, `?`, `{2,4}`, with `^` and
 * `$` at the ends, which mean nothing here because a pattern always fits the whole name. No groups and no alternatives,
 * so that nothing takes longer than the lengths of pattern and name multiplied, whatever either of them says.
 */

/** Characters. */
const PATTERN_MAX = 256

/** No upper end. */
const OPEN = 100

/** One character of a name: which fit, how many may stand there. */
interface Step {
  fits(character: string): boolean
  readonly isOptional: boolean
  readonly isRepeated: boolean
}

export class SimplePattern {
  readonly #steps: readonly Step[]

  private constructor(steps: readonly Step[]) {
    this.#steps = steps
  }

  /** Undefined where the text holds what these patterns do not have. */
  static read(text: string): SimplePattern | undefined {
    if (text.length > PATTERN_MAX) return undefined
    const body = text.replace(/^\^/, '').replace(/(?<!\\)\$$/, '')
    const steps: Step[] = []
    const part = /(\\[^\n]|\[\^?(?:\\.|[^\]\\])+\]|[^\\[\]()|{}*+?^$])(?:([*+?])|\{(\d{1,2})(,?)(\d{0,2})\})?/suy
    while (part.lastIndex < body.length) {
      const [, atom, sign = '', least = '', comma = '', most = ''] = part.exec(body) ?? []
      const fits = atom === undefined ? undefined : fitting(atom)
      if (fits === undefined) return undefined
      if (least === '') steps.push({ fits, isOptional: /[*?]/.test(sign), isRepeated: /[*+]/.test(sign) })
      else steps.push(...counted(fits, Number(least), comma === '' ? Number(least) : Number(most || OPEN)))
      if (steps.length > PATTERN_MAX) return undefined
    }
    return new SimplePattern(steps)
  }

  /** Follows all ways through the pattern at once, a character at a time. */
  matches(name: string): boolean {
    const steps = this.#steps
    let at = this.#closed(new Set([0]))
    for (const character of name) {
      const next = new Set<number>()
      for (const place of at) {
        const step = steps[place]
        if (step === undefined || !step.fits(character)) continue
        next.add(place + 1)
        if (step.isRepeated) next.add(place)
      }
      if (next.size === 0) return false
      at = this.#closed(next)
    }
    return at.has(steps.length)
  }

  /** With the places that are reached without a character; a set goes on over what is added to it. */
  #closed(places: Set<number>): Set<number> {
    for (const place of places) if (this.#steps[place]?.isOptional === true) places.add(place + 1)
    return places
  }
}

/** `{2,4}` as steps one by one; `{2,}` with one that may go on. */
function counted(fits: Step['fits'], least: number, most: number): readonly Step[] {
  const needed = Array.from({ length: least }, () => ({ fits, isOptional: false, isRepeated: false }))
  if (most === OPEN) return [...needed, { fits, isOptional: true, isRepeated: true }]
  const more = Array.from({ length: Math.max(0, most - least) }, () => ({ fits, isOptional: true, isRepeated: false }))
  return [...needed, ...more]
}

const CLASSES: Readonly<Record<string, string>> = { '\\d': '[0-9]', '\\w': '[A-Za-z0-9_]' }

function fitting(atom: string): Step['fits'] | undefined {
  if (atom === '.') return () => true
  const known = CLASSES[atom]
  if (known !== undefined) return fitting(known)
  if (atom.startsWith('[')) return fittingClass(atom.slice(1, -1))
  // An escaped letter or digit means something of its own in other dialects.
  if (/^\\[A-Za-z0-9]/.test(atom)) return undefined
  const literal = atom.startsWith('\\') ? atom.slice(1) : atom
  return character => character === literal
}

/** `a-z_`, or `^a-z`. */
function fittingClass(inside: string): Step['fits'] | undefined {
  const isInverted = inside.startsWith('^')
  const body = isInverted ? inside.slice(1) : inside
  const ranges: (readonly [from: string, to: string])[] = []
  for (const [part, first = '', last = first] of body.matchAll(/(\\?.)(?:-(\\?[^\\]))?/gsu)) {
    if (/\\[A-Za-z0-9]/.test(part)) return undefined
    ranges.push([first.replace('\\', '') || '\\', last.replace('\\', '') || '\\'])
  }
  return character => ranges.some(([from, to]) => character >= from && character <= to) !== isInverted
}

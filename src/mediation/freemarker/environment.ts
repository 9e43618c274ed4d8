/** One run of a template: its output, variables and limits. */
import { hasHeapRoom } from '../../runtime/heap-room.ts'
import { checkTime, LimitReached, noRoom, TOO_LONG } from '../flow-limits.ts'
import { tooLong } from '../property-type.ts'
import type { Prefixes } from './nodes.ts'
import { Pieces } from './pieces.ts'
import type { SettingName } from './plan.ts'
import { TemplateFailure } from './template-error.ts'
import { Hash, type Items, type TemplateValue } from './values.ts'

/** What a run may use. */
export interface RunLimits {
  /** Characters of the output, and of each text. */
  readonly characters: number
  /** Items of each sequence that the template makes. */
  readonly items: number
  /** Tells whether nobody waits for the result any more. */
  isOver(): boolean
  /** Parses JSON within the limits of bodies; undefined for another text. Throws MediationFault beyond a limit. */
  parseJson(text: string): { readonly text: string } | undefined
}

/** Work between two looks at the clock, the heap and the task; one iteration, visited node or 64 characters each. */
const WORK_PER_LOOK = 4096
const CHARACTERS_PER_WORK = 64
/** Nested calls of macros, functions and lambdas. */
const CALLS_MAX = 100
const ROOM_BYTES = 2_097_152
const NO_ROOM = 'a template needs more memory than the worker has left'
const ITEM_BYTES = 16
const NODE_BYTES = 256

/** A loop that runs, as `?index` and other built-ins of loop variables read it. */
export interface Loop {
  index: number
  readonly items: Items
  /** An item is a name and a member of a hash. */
  readonly isOfPairs: boolean
}

/** What `<#list xs as x>` names `x_index` and `x_has_next`: older names of `x?index` and `x?has_next`. */
const OLD_NAMES: readonly (readonly [suffix: string, read: (loop: Loop) => TemplateValue])[] = [
  ['_index', ({ index }) => index],
  ['_has_next', ({ index, items }) => index + 1 < items.size],
]

/** Variables of a loop, macro or function. `loop` is null for a macro or function. */
export interface Frame {
  readonly variables: Map<string, TemplateValue>
  readonly loops: ReadonlyMap<string, Loop>
  /** Around it; null for the template, which a macro sees behind its own variables. */
  readonly outer: Frame | null
  readonly isMacro: boolean
}

/** The content of the call of a macro, which `<#nested>` runs. */
export type RunNested = (args: readonly TemplateValue[]) => void

export class Environment {
  readonly variables = new Map<string, TemplateValue>()
  readonly settings = new Map<SettingName, string>()
  readonly prefixes: Prefixes
  /** The time of `.now`. */
  readonly nowMs = Date.now()
  frame: Frame | null = null
  /** The list that runs, for `<#items>` and `<#sep>`; null outside of one. */
  list: Loop | null = null
  nested: RunNested | null = null
  returned: TemplateValue = undefined
  /** Message of the failure that `<#recover>` deals with. */
  error: string | undefined
  readonly root: Hash
  readonly #limits: RunLimits
  #output = new Pieces(this)
  #work = 0
  #calls = 0

  /** `root`: makes the data of the template. */
  constructor(root: (env: Environment) => Hash, prefixes: Prefixes, limits: RunLimits) {
    this.root = root(this)
    this.prefixes = prefixes
    this.#limits = limits
  }

  get output(): string {
    return this.#output.text
  }

  /** Throws MediationFault beyond the limit. */
  write(text: string): void {
    this.#output.add(text)
  }

  /** Returns what `run` writes, in place of its output. */
  captured(run: () => void): string {
    const before = this.#output
    this.#output = new Pieces(this)
    try {
      run()
      return this.#output.text
    } finally {
      this.#output = before
    }
  }

  /** Counts work. Throws LimitReached where the flow computes for too long, MediationFault without room in the heap. */
  spend(work: number): void {
    this.#work += work
    if (this.#work < WORK_PER_LOOK) return
    this.#work = 0
    checkTime()
    if (this.#limits.isOver()) throw new LimitReached('nobody waits for the message any more', TOO_LONG)
    if (!hasHeapRoom(ROOM_BYTES)) throw noRoom(NO_ROOM)
  }

  /** Counts the work of reading a text. */
  reads(text: string): void {
    this.spend(1 + text.length / CHARACTERS_PER_WORK)
  }

  /** The template makes a text of so many characters. Throws MediationFault beyond a limit. */
  makes(characters: number): void {
    const { characters: most } = this.#limits
    if (characters > most) throw tooLong(`the template makes more than ${most} characters (body.max_decoded_size)`)
    this.spend(1 + characters / CHARACTERS_PER_WORK)
    if (!hasHeapRoom(2 * characters)) throw noRoom(NO_ROOM)
  }

  /** The template makes a sequence of so many items; `made`: those that are copied. Throws MediationFault. */
  collects(items: number, made = items): void {
    const { items: most } = this.#limits
    if (items > most) throw tooLong(`the template makes a sequence of more than ${most} items (body.max_items)`)
    this.spend(1 + made)
    if (!hasHeapRoom(ITEM_BYTES * made)) throw noRoom(NO_ROOM)
  }

  /** The template visits so many nodes of XML for the first time. Throws MediationFault without room for them. */
  visits(nodes: number): void {
    this.spend(nodes)
    if (!hasHeapRoom(NODE_BYTES * nodes)) throw noRoom(NO_ROOM)
  }

  parseJson(text: string): { readonly text: string } | undefined {
    this.makes(text.length)
    return this.#limits.parseJson(text)
  }

  variable(name: string): TemplateValue {
    const [suffix, read] = OLD_NAMES.find(([end]) => name.endsWith(end)) ?? []
    const ofLoop = suffix === undefined ? '' : name.slice(0, -suffix.length)
    for (let frame = this.frame; frame !== null; frame = frame.outer) {
      if (frame.variables.has(name)) return frame.variables.get(name)
      const loop = ofLoop === '' ? undefined : frame.loops.get(ofLoop)
      if (loop !== undefined) return read!(loop)
    }
    return this.global(name)
  }

  /** A variable of the template, or a member of its data. */
  global(name: string): TemplateValue {
    return this.variables.has(name) ? this.variables.get(name) : this.root.get(name)
  }

  /** The loop whose variable has the name; undefined for none. */
  loop(name: string): Loop | undefined {
    for (let frame = this.frame; frame !== null; frame = frame.outer) {
      const loop = frame.loops.get(name)
      if (loop !== undefined) return loop
    }
    return undefined
  }

  /** The variables of the macro or function that runs; undefined outside of one. */
  get locals(): Map<string, TemplateValue> | undefined {
    for (let frame = this.frame; frame !== null; frame = frame.outer) if (frame.isMacro) return frame.variables
    return undefined
  }

  /** Runs with another frame. */
  inFrame<T>(frame: Frame | null, run: () => T): T {
    const before = this.frame
    this.frame = frame
    try {
      return run()
    } finally {
      this.frame = before
    }
  }

  /** Runs a macro, function or lambda. Throws TemplateFailure where they nest too deep. */
  called<T>(run: () => T): T {
    if (this.#calls >= CALLS_MAX) throw new TemplateFailure(`more than ${CALLS_MAX} calls of macros are nested`)
    this.#calls++
    this.spend(1)
    try {
      return run()
    } finally {
      this.#calls--
    }
  }
}

/** `.globals`, and with `.vars` all that a name alone reads: data of the template too. */
export class VariablesHash extends Hash {
  readonly #env: Environment
  readonly #hasLocals: boolean

  constructor(env: Environment, hasLocals: boolean) {
    super()
    this.#env = env
    this.#hasLocals = hasLocals
  }

  override get(name: string): TemplateValue {
    return this.#hasLocals ? this.#env.variable(name) : this.#env.global(name)
  }

  override names(): readonly string[] {
    const { root, variables, frame: innermost } = this.#env
    const names = new Set([...root.names(), ...variables.keys()])
    for (let frame = this.#hasLocals ? innermost : null; frame !== null; frame = frame.outer) {
      for (const name of frame.variables.keys()) names.add(name)
    }
    return [...names]
  }
}

/** One YAML file, asked by path. Notes a fault, with its line, for whatever is not there or not of the right kind. */
import { createRequire } from 'node:module'
import type * as Yaml from 'yaml'
import type { Document, ParsedNode, YAMLMap, YAMLSeq } from 'yaml'
import { type Fault, show } from './fault.ts'

const require = createRequire(import.meta.url)
let loaded: typeof Yaml | undefined

/** The parser is most of what a start loads: with the first file, because a gateway without APIs has none. */
function yaml(): typeof Yaml {
  loaded ??= require('yaml') as typeof Yaml
  return loaded
}

/** Names of keys, and places in lists from 0. */
export type Path = readonly (string | number)[]

export class YamlFile {
  readonly faults: Fault[] = []
  /** What is accepted and not acted on. */
  readonly warnings: Fault[] = []
  readonly #label: string
  readonly #lines = new (yaml().LineCounter)()
  readonly #document: Document

  constructor(label: string, source: string) {
    this.#label = label
    // Uniqueness is looked at below: the parser would compare each key with all before it.
    const options = { lineCounter: this.#lines, prettyErrors: false, stringKeys: true, uniqueKeys: false }
    this.#document = yaml().parseDocument(source, options)
    // What follows a colon is a piece of the file, which may hold a password.
    for (const { message, pos } of this.#document.errors) this.#invalid(pos[0], message.replace(/(?<! ): [\s\S]*$/, ''))
    // What the parser gave up may be of any shape.
    if (this.faults.length > 0) return
    yaml().visit(this.#document, {
      Map: (_, map) => {
        for (const offset of repeatedKeys(map)) this.#invalid(offset, 'Map keys must be unique')
      },
    })
  }

  #invalid(offset: number, reason: string): void {
    const { line, col } = this.#lines.linePos(offset)
    const expected = `not valid YAML: ${reason}`
    this.faults.push({ where: `${this.#label}:${line}:${col}`, key: '', given: '', expected, remedy: '' })
  }

  has(path: Path): boolean {
    return this.#node(path) !== undefined
  }

  /** How many items the list at a path has; undefined where there is no list. */
  lengthOf(path: Path): number | undefined {
    const node = this.#node(path)
    return yaml().isSeq(node) ? node.items.length : undefined
  }

  /** Numbers keep their spelling: the version 1.10 must not become 1.1. */
  text(path: Path): string | undefined {
    const node = this.#node(path)
    if (node === undefined) {
      this.lacks(path)
      return undefined
    }
    if (yaml().isScalar(node) && typeof node.value === 'string') return node.value
    if (yaml().isScalar(node) && typeof node.value === 'number') return node.source ?? String(node.value)
    this.object(path, undefined, 'expected text', 'write one value')
    return undefined
  }

  flag(path: Path, fallback: boolean): boolean {
    const node = this.#node(path)
    if (node === undefined) return fallback
    const value = yaml().isScalar(node) ? node.value : undefined
    // Exports write some of them as "True" and "False".
    if (/^true$/i.test(String(value))) return true
    if (/^false$/i.test(String(value))) return false
    this.object(path, value, 'expected true or false', `leave it out for ${fallback}`)
    return fallback
  }

  /** Notes that the value at a path will not do. */
  object(path: Path, given: unknown, expected: string, remedy: string): void {
    this.faults.push(this.#finding(path, given, expected, remedy))
  }

  /** Notes that the value at a path is accepted and does nothing. */
  warn(path: Path, given: unknown, expected: string, remedy: string): void {
    this.warnings.push(this.#finding(path, given, expected, remedy))
  }

  #finding(path: Path, given: unknown, expected: string, remedy: string): Fault {
    const key = path.map(part => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('')
    return { where: this.where(path), key: key.slice(1), given: show(given), expected, remedy }
  }

  /** Notes that there is nothing at a path. */
  lacks(path: Path): void {
    this.object(path, undefined, 'is missing', 'add it')
  }

  /** The file and line of a path, or of the nearest thing around it that is there. */
  where(path: Path): string {
    for (let length = path.length; length > 0; length--) {
      const offset = this.#offsetOf(path.slice(0, length))
      if (offset !== undefined) return `${this.#label}:${this.#lines.linePos(offset).line}`
    }
    return `${this.#label}:1`
  }

  #offsetOf(path: Path): number | undefined {
    const parent = path.length === 1 ? this.#resolved(this.#document.contents) : this.#node(path.slice(0, -1))
    if (yaml().isSeq(parent)) return (parent.get(path.at(-1), true) as ParsedNode | undefined)?.range[0]
    if (!yaml().isMap(parent)) return undefined
    const pair = parent.items.find(({ key }) => yaml().isScalar(key) && key.value === path.at(-1))
    return (pair?.key as ParsedNode | undefined)?.range[0]
  }

  #node(path: Path): unknown {
    let node = this.#resolved(this.#document.contents)
    for (const name of path) {
      if (!(typeof name === 'number' ? yaml().isSeq(node) : yaml().isMap(node))) return undefined
      node = this.#resolved((node as YAMLMap | YAMLSeq).get(name, true))
    }
    return yaml().isScalar(node) && node.value === null ? undefined : (node ?? undefined)
  }

  #resolved(node: unknown): unknown {
    return yaml().isAlias(node) ? node.resolve(this.#document) : node
  }
}

/** Where the same key stands again. */
function repeatedKeys({ items }: YAMLMap): readonly number[] {
  const seen = new Set<unknown>()
  return items.flatMap(({ key }) => {
    if (!yaml().isScalar(key)) return []
    if (seen.has(key.value)) return [(key as ParsedNode).range[0]]
    seen.add(key.value)
    return []
  })
}

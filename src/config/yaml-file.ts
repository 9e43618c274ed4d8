/** One YAML file, asked by path. Notes a fault, with its line, for whatever is not there or not of the right kind. */
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, type Document, type ParsedNode } from 'yaml'
import { type Fault, show } from './fault.ts'

type Path = readonly string[]

export class YamlFile {
  readonly faults: Fault[] = []
  readonly #label: string
  readonly #lines = new LineCounter()
  readonly #document: Document

  constructor(label: string, source: string) {
    this.#label = label
    this.#document = parseDocument(source, { lineCounter: this.#lines, prettyErrors: false, stringKeys: true })
    for (const { message, pos } of this.#document.errors) {
      const { line, col } = this.#lines.linePos(pos[0])
      // What follows a colon is a piece of the file, which may hold a password.
      const reason = message.replace(/(?<! ): [\s\S]*$/, '')
      const expected = `not valid YAML: ${reason}`
      this.faults.push({ where: `${label}:${line}:${col}`, key: '', given: '', expected, remedy: '' })
    }
  }

  has(path: Path): boolean {
    return this.#node(path) !== undefined
  }

  isList(path: Path): boolean {
    return isSeq(this.#node(path))
  }

  /** Numbers keep their spelling: the version 1.10 must not become 1.1. */
  text(path: Path): string | undefined {
    const node = this.#node(path)
    if (node === undefined) {
      this.lacks(path)
      return undefined
    }
    if (isScalar(node) && typeof node.value === 'string') return node.value
    if (isScalar(node) && typeof node.value === 'number') return node.source ?? String(node.value)
    this.object(path, undefined, 'expected text', 'write one value')
    return undefined
  }

  flag(path: Path, fallback: boolean): boolean {
    const node = this.#node(path)
    if (node === undefined) return fallback
    const value = isScalar(node) ? node.value : undefined
    if (value === true || value === 'true') return true
    if (value === false || value === 'false') return false
    this.object(path, value, 'expected true or false', `leave it out for ${fallback}`)
    return fallback
  }

  /** Notes that the value at a path will not do. */
  object(path: Path, given: unknown, expected: string, remedy: string): void {
    this.faults.push({ where: this.where(path), key: path.join('.'), given: show(given), expected, remedy })
  }

  /** Notes that there is nothing at a path. */
  lacks(path: Path): void {
    this.object(path, undefined, 'is missing', 'add it')
  }

  /** The file and line of a path, or of the nearest thing around it that is there. */
  where(path: Path): string {
    for (let length = path.length; length > 0; length--) {
      const offset = this.#offsetOfKey(path.slice(0, length))
      if (offset !== undefined) return `${this.#label}:${this.#lines.linePos(offset).line}`
    }
    return `${this.#label}:1`
  }

  #offsetOfKey(path: Path): number | undefined {
    const parent = path.length === 1 ? this.#resolved(this.#document.contents) : this.#node(path.slice(0, -1))
    if (!isMap(parent)) return undefined
    const pair = parent.items.find(({ key }) => isScalar(key) && key.value === path.at(-1))
    return (pair?.key as ParsedNode | undefined)?.range[0]
  }

  #node(path: Path): unknown {
    let node = this.#resolved(this.#document.contents)
    for (const name of path) {
      if (!isMap(node)) return undefined
      node = this.#resolved(node.get(name, true))
    }
    return isScalar(node) && node.value === null ? undefined : (node ?? undefined)
  }

  #resolved(node: unknown): unknown {
    return isAlias(node) ? node.resolve(this.#document) : node
  }
}

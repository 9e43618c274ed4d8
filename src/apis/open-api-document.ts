/**
 * One OpenAPI document, 2.0, 3.0 or 3.1: read, bounded in size, its references checked, validated against the schema of
 * its version. No other file is read: every reference must stay within the document.
 */
import { createRequire } from 'node:module'
import type { ErrorObject, ValidateFunction } from 'ajv'
import type { Path, YamlFile } from './yaml-file.ts'

const require = createRequire(import.meta.url)

type OpenApiVersion = '2.0' | '3.0' | '3.1'
type OpenApiObject = Readonly<Record<string, unknown>>

/** The undocumented part of the package; its documented methods copy each document and are asynchronous. */
interface SchemaValidator {
  getAjvValidator(version: OpenApiVersion): ValidateFunction
}

let validator: SchemaValidator | undefined

/** Loading and compiling take 250 ms, so both wait for the first document that is validated. */
function schemaOf(version: OpenApiVersion): ValidateFunction {
  if (validator === undefined) {
    const { Validator } = require('@seriousme/openapi-schema-validator') as {
      Validator: new (options: object) => SchemaValidator
    }
    // Formats of contact addresses and the like do not matter to a gateway.
    validator = new Validator({ validateFormats: false })
  }
  return validator.getAjvValidator(version)
}

/** Longest chain of references. */
const HOPS_MAX = 16

export class OpenApiDocument {
  /** Collects the errors of the document. */
  readonly file: YamlFile
  readonly version: OpenApiVersion
  /** The document as written: numbers are text. */
  readonly root: OpenApiObject

  private constructor(file: YamlFile, version: OpenApiVersion, root: OpenApiObject) {
    this.file = file
    this.version = version
    this.root = root
  }

  /** Returns undefined for a document that cannot be read or has a broken reference; `file` then holds the errors. */
  static read(file: YamlFile): OpenApiDocument | undefined {
    if (file.errors.length > 0) return undefined
    const version = versionOf(file)
    const { root } = file
    if (version === undefined || !isObject(root)) return undefined
    const excess = sizeViolation(root)
    if (excess !== undefined) {
      file.error([], undefined, excess, 'leave out what is not needed')
      return undefined
    }
    const document = new OpenApiDocument(file, version, root)
    const before = file.errors.length
    const valid = new Set<string>()
    for (const reference of referencesOf(root)) {
      if (!valid.has(reference.ref) && document.#check(reference)) valid.add(reference.ref)
    }
    return file.errors.length > before ? undefined : document
  }

  /** Returns false, and reports an error, for a broken reference. */
  #check({ at, ref }: Reference): boolean {
    const path = [...at, '$ref']
    if (!ref.startsWith('#')) {
      this.file.error(path, ref, 'refers to another file', 'copy the referenced object into the document')
      return false
    }
    // The name of a schema anchor (JSON Schema 2020-12 8.2.2), which the validator resolves.
    const isAnchor = this.version === '3.1' && /^#[^/]/.test(ref)
    if (isAnchor || this.resolve(ref) !== undefined) return true
    this.file.error(path, ref, 'refers to nothing', 'name an object of the document')
    return false
  }

  /** The value that a reference leads to, with its path; undefined for a broken one, and for the name of an anchor. */
  resolve(ref: string): { readonly value: unknown; readonly path: Path } | undefined {
    const path: (string | number)[] = []
    let value: unknown = this.root
    for (const part of ref.slice(1).split('/').slice(1)) {
      const name = unescaped(part)
      if (name === undefined || typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return
      path.push(Array.isArray(value) ? Number(name) : name)
      value = (value as OpenApiObject)[name]
    }
    return { value, path }
  }

  /** The object at a path, references followed; undefined if there is none. */
  objectAt(path: Path): { readonly value: OpenApiObject; readonly path: Path } | undefined {
    let found: { readonly value: unknown; readonly path: Path } | undefined = { value: this.file.value(path), path }
    for (let hops = 0; hops < HOPS_MAX; hops++) {
      if (!isObject(found?.value)) return undefined
      const { $ref: ref } = found.value
      if (typeof ref !== 'string') return { value: found.value, path: found.path }
      found = this.resolve(ref)
    }
    return undefined
  }

  /** Adds an error for the most specific violation of the schema of its version. */
  validate(): void {
    const isValid = schemaOf(this.version)
    const typed = this.file.typed()
    if (!isObject(typed) || isValid(withTextVersions(typed, this.file, this.version))) return
    // The validator reports every alternative that it tried; the deepest one is the violation itself.
    const all = isValid.errors ?? []
    const deepest = all.reduce((one, other) => (depthOf(other) > depthOf(one) ? other : one), all[0]!)
    const about = `OpenAPI ${this.version}`
    const path = this.#pathOf(deepest.instancePath)
    this.file.error(path, undefined, `${messageOf(deepest)} (${about})`, `see the specification, ${about}`)
  }

  /** Path of a JSON pointer. */
  #pathOf(pointer: string): Path {
    return this.resolve(`#${pointer.replaceAll('%', '%25')}`)?.path ?? []
  }
}

function depthOf({ instancePath }: ErrorObject): number {
  return instancePath.split('/').length
}

function messageOf({ message = 'does not fit', params }: ErrorObject): string {
  const name = params.additionalProperty ?? params.unevaluatedProperty
  return typeof name === 'string' ? `${message}: ${JSON.stringify(name.slice(0, 100))}` : message
}

/** One reference token of a JSON pointer in a URI fragment (RFC 6901 6); undefined if it is malformed. */
function unescaped(part: string): string | undefined {
  if (!/[%~]/.test(part)) return part
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return undefined
  }
}

function versionOf(file: YamlFile): OpenApiVersion | undefined {
  const key = ['swagger', 'openapi'].find(name => file.has([name]))
  if (key === undefined) {
    const isProject = file.has(['type']) && file.has(['data'])
    const hint = isProject ? 'put it into a folder of its own' : 'begin it with openapi: 3.0.3'
    file.error([], undefined, 'is no OpenAPI document', hint)
    return undefined
  }
  const text = file.text([key])
  if (text === undefined) return undefined
  const versions = key === 'swagger' ? [/^2\.0$/] : [/^3\.0\.\d+(?:-.+)?$/, /^3\.1\.\d+(?:-.+)?$/]
  if (versions.some(version => version.test(text))) return text.slice(0, 3) as OpenApiVersion
  file.error([key], text, 'expected OpenAPI 2.0, 3.0.x or 3.1.x', 'convert it to one of them')
  return undefined
}

/** Documents often write versions as numbers, which the schema refuses. */
function withTextVersions(root: OpenApiObject, file: YamlFile, version: OpenApiVersion): OpenApiObject {
  const { info } = root
  const own = version === '2.0' ? { swagger: version } : { openapi: file.text(['openapi']) }
  const isNumber = isObject(info) && typeof info.version === 'number'
  const named = isNumber ? { info: { ...info, version: file.text(['info', 'version']) } } : {}
  return { ...root, ...own, ...named }
}

export function isObject(value: unknown): value is OpenApiObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Limits for a walk through a document, with every alias expanded; an alias may even hold itself. */
const DEPTH_MAX = 100
const VALUES_MAX = 4_000_000

/** Why a document is too large to walk through; undefined if it is not. */
function sizeViolation(root: unknown): string | undefined {
  let values = 0
  let deepest = 0
  const enter = (value: unknown, depth: number): void => {
    if (++values > VALUES_MAX || typeof value !== 'object' || value === null) return
    deepest = Math.max(deepest, depth)
    if (depth > DEPTH_MAX) return
    for (const inner of Object.values(value)) {
      if (values > VALUES_MAX || deepest > DEPTH_MAX) return
      enter(inner, depth + 1)
    }
  }
  enter(root, 1)
  if (deepest > DEPTH_MAX) return `is nested more than ${DEPTH_MAX} deep`
  return values > VALUES_MAX ? `holds more than ${VALUES_MAX} values, with what aliases repeat` : undefined
}

interface Reference {
  /** Path of the object with the `$ref`. */
  readonly at: Path
  readonly ref: string
}

/** Keys of plain data: a `$ref` within them is no reference. */
const DATA = new Set(['example', 'examples', 'default', 'enum', 'const'])
/** Keys of maps whose own keys are free names. */
const NAMED = new Set(['properties', 'patternProperties', 'schemas', 'definitions', '$defs', 'parameters', 'responses'])

/** All references of a document that `sizeViolation` accepts. */
function referencesOf(root: OpenApiObject): readonly Reference[] {
  const found: Reference[] = []
  const seen = new Set<object>()
  const path: (string | number)[] = []
  const enter = (value: unknown, isNamed: boolean): void => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return
    seen.add(value)
    if (Array.isArray(value)) {
      for (const [place, item] of value.entries()) step(place, item, false)
      return
    }
    const { $ref: ref } = value as OpenApiObject
    if (typeof ref === 'string' && !isNamed) found.push({ at: [...path], ref })
    for (const [name, inner] of Object.entries(value)) {
      if (typeof inner !== 'object') continue
      if (isNamed || !(DATA.has(name) || name.startsWith('x-'))) step(name, inner, !isNamed && NAMED.has(name))
    }
  }
  const step = (name: string | number, value: unknown, isNamed: boolean): void => {
    path.push(name)
    enter(value, isNamed)
    path.pop()
  }
  enter(root, false)
  return found
}

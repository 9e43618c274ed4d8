/**
 * One OpenAPI document, 2.0, 3.0 or 3.1: read, bounded, its references checked, and held to the schema of its version.
 * Nothing but the document itself is read: what it refers to must stand in it.
 */
import { createRequire } from 'node:module'
import type { ErrorObject, ValidateFunction } from 'ajv'
import { boundFault, type Reference, referencesOf } from './open-api-references.ts'
import type { Path, YamlFile } from './yaml-file.ts'

const require = createRequire(import.meta.url)

type OpenApiVersion = '2.0' | '3.0' | '3.1'
export type OpenApiObject = Readonly<Record<string, unknown>>

/** The package has it beside what it documents, which would copy every document and wait for nothing. */
interface SchemaValidator {
  getAjvValidator(version: OpenApiVersion): ValidateFunction
}

let validator: SchemaValidator | undefined

/** Takes a quarter of a second to load and to compile: with the first document that has to be judged. */
function schemaOf(version: OpenApiVersion): ValidateFunction {
  if (validator === undefined) {
    const { Validator } = require('@seriousme/openapi-schema-validator') as {
      Validator: new (options: object) => SchemaValidator
    }
    // Whether an address of a contact is one is nobody's business here.
    validator = new Validator({ validateFormats: false })
  }
  return validator.getAjvValidator(version)
}

/** References lead to references at most so often. */
const HOPS_MAX = 16

export class OpenApiDocument {
  /** Notes what is wrong with it. */
  readonly file: YamlFile
  readonly version: OpenApiVersion
  /** As written: numbers are text. */
  readonly root: OpenApiObject

  private constructor(file: YamlFile, version: OpenApiVersion, root: OpenApiObject) {
    this.file = file
    this.version = version
    this.root = root
  }

  /** Undefined where it cannot be read, or refers to what is not in it; `file` has the faults. */
  static read(file: YamlFile): OpenApiDocument | undefined {
    if (file.faults.length > 0) return undefined
    const version = versionOf(file)
    const { root } = file
    if (version === undefined || !isObject(root)) return undefined
    const tooMuch = boundFault(root)
    if (tooMuch !== undefined) {
      file.object([], undefined, tooMuch, 'leave out what is not needed')
      return undefined
    }
    const document = new OpenApiDocument(file, version, root)
    const before = file.faults.length
    const sound = new Set<string>()
    for (const reference of referencesOf(root)) {
      if (!sound.has(reference.ref) && document.#check(reference)) sound.add(reference.ref)
    }
    return file.faults.length > before ? undefined : document
  }

  /** Notes it where it is unsound. */
  #check({ at, ref }: Reference): boolean {
    const path = [...at, '$ref']
    if (!ref.startsWith('#')) {
      this.file.object(path, ref, 'leads out of the document', 'put what it leads to into the document')
      return false
    }
    // The name of an anchor: a schema knows what that is (JSON Schema 2020-12 8.2.2).
    const isAnchor = this.version === '3.1' && /^#[^/]/.test(ref)
    if (isAnchor || this.#followed(ref) !== undefined) return true
    this.file.object(path, ref, 'leads to nothing', 'name something that is in the document')
    return false
  }

  #followed(ref: string): { readonly value: unknown; readonly path: Path } | undefined {
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

  /** What stands at a path, or where its reference leads; undefined where that is no object. */
  objectAt(path: Path): { readonly value: OpenApiObject; readonly path: Path } | undefined {
    let found: { readonly value: unknown; readonly path: Path } | undefined = { value: this.file.value(path), path }
    for (let hops = 0; hops < HOPS_MAX; hops++) {
      if (!isObject(found?.value)) return undefined
      const { $ref: ref } = found.value
      if (typeof ref !== 'string') return { value: found.value, path: found.path }
      found = this.#followed(ref)
    }
    return undefined
  }

  /** Notes the first thing that the schema of its version does not take. */
  validate(): void {
    const holds = schemaOf(this.version)
    const typed = this.file.typed()
    if (!isObject(typed) || holds(withTexts(typed, this.file, this.version))) return
    // Of alternatives all that were tried are told: what is wrong is where the longest path leads.
    const told = holds.errors ?? []
    const first = told.reduce((one, other) => (depthOf(other) > depthOf(one) ? other : one), told[0]!)
    const about = `OpenAPI ${this.version}`
    this.file.object(this.#pathOf(first.instancePath), undefined, `${messageOf(first)} (${about})`, remedyOf(about))
  }

  /** Of a JSON pointer. */
  #pathOf(pointer: string): Path {
    return this.#followed(`#${pointer.replaceAll('%', '%25')}`)?.path ?? []
  }
}

function depthOf({ instancePath }: ErrorObject): number {
  return instancePath.split('/').length
}

function messageOf({ message = 'does not fit', params }: ErrorObject): string {
  const name = params.additionalProperty ?? params.unevaluatedProperty
  return typeof name === 'string' ? `${message}: ${JSON.stringify(name.slice(0, 100))}` : message
}

function remedyOf(about: string): string {
  return `see the specification, ${about}`
}

/** Of a pointer within a URI (RFC 6901 6). */
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
    const remedy = isProject ? 'put it into a folder of its own' : 'begin it with openapi: 3.0.3'
    file.object([], undefined, 'is no OpenAPI document', remedy)
    return undefined
  }
  const text = file.text([key])
  if (text === undefined) return undefined
  const versions = key === 'swagger' ? [/^2\.0$/] : [/^3\.0\.\d+(?:-.+)?$/, /^3\.1\.\d+(?:-.+)?$/]
  if (versions.some(version => version.test(text))) return text.slice(0, 3) as OpenApiVersion
  file.object([key], text, 'expected OpenAPI 2.0, 3.0.x or 3.1.x', 'convert it to one of them')
  return undefined
}

/** Versions are often written as numbers. */
function withTexts(root: OpenApiObject, file: YamlFile, version: OpenApiVersion): OpenApiObject {
  const { info } = root
  const own = version === '2.0' ? { swagger: version } : { openapi: file.text(['openapi']) }
  const isNumber = isObject(info) && typeof info.version === 'number'
  const named = isNumber ? { info: { ...info, version: file.text(['info', 'version']) } } : {}
  return { ...root, ...own, ...named }
}

export function isObject(value: unknown): value is OpenApiObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

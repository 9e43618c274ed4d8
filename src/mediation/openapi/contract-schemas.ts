/**
 * Compiles the schemas of a contract with their first use. A check lists violations without the values of clients, and
 * stops looking after `VIOLATIONS_MAX` of one part of a message: a list of a million wrong items costs no more.
 */
import { createRequire } from 'node:module'
import {
  addSchemaRules,
  type CodeTemplate,
  refuseLongSchema,
  refuseUncheckedProperty,
  runCheck,
  schemaOptions,
} from '../schema-rules.ts'
import { addExactRules, withDigits, withExactNumbers } from '../exact-numbers.ts'
import { inLoops, restartCheckTime } from '../schema-limits.ts'
import type { ApiContract, Violation } from './api-contract.ts'
import { FORMATS } from './text-formats.ts'

const require = createRequire(import.meta.url)

/** Violations that are looked for in one loop of a check. */
export const VIOLATIONS_MAX = 1000
/** Compiled schemas of one API that a thread keeps; beyond that it begins anew. */
const COMPILED_MAX = 2000
const NAME_MAX = 64
export const PLACE_MAX = 128
const RULE_MAX = 200

interface AjvError {
  readonly keyword: string
  readonly instancePath: string
  readonly message?: string
  readonly params: Readonly<Record<string, unknown>>
}

interface Validator {
  (value: unknown): boolean
  readonly errors?: readonly AjvError[] | null
}

interface Ajv {
  addSchema(schema: unknown): void
  compile(schema: unknown): Validator
  removeKeyword(keyword: string): void
  addKeyword(keyword: object): void
}

/** Ajv counts the violations of a function in `errors`. */
function withLimit(code: string): string {
  return inLoops(code, `if(errors>=${VIOLATIONS_MAX})break;`)
}

/** The compiled schemas of one API in one thread. */
export class ContractSchemas {
  readonly #schemas: ApiContract['schemas']
  /** With their first use: few messages hold numbers beyond a double. */
  readonly #compiled: { doubles?: Compiled; exact?: Compiled } = {}

  constructor(schemas: ApiContract['schemas']) {
    this.#schemas = schemas
  }

  get definitions(): ApiContract['schemas'] {
    return this.#schemas
  }

  /** Throws where the schema cannot be compiled. */
  compile(name: string): void {
    refuseUncheckedProperty(this.#schemas[name])
    refuseLongSchema(this.#schemas[name])
    this.#validator(name, false)
  }

  /** `place`: of the value within its message. `placeOf`: of a JSON Pointer into the value. */
  violations(
    name: string,
    value: unknown,
    place: string,
    placeOf: (pointer: string) => string = pointer => pointer,
  ): readonly Violation[] {
    if (name === '') return []
    const exact = withDigits(value)
    const validate = this.#validator(name, exact !== null)
    const isValid = () => (exact === null ? validate(value) : withExactNumbers(exact, validate))
    if (runCheck(isValid)) return []
    const errors = (validate.errors ?? []).slice(0, VIOLATIONS_MAX)
    const told = errors.filter(({ keyword }) => keyword !== 'if')
    return (told.length === 0 ? errors : told).map(error => {
      return violationOf(error, place, placeOf(error.instancePath))
    })
  }

  #validator(name: string, isExact: boolean): Validator {
    const kind = isExact ? 'exact' : 'doubles'
    let { ajv, validators } = this.#compiled[kind] ?? { ajv: newAjv(this.#schemas, isExact), validators: new Map() }
    let found = validators.get(name)
    if (found === undefined) {
      if (validators.size >= COMPILED_MAX) {
        ajv = newAjv(this.#schemas, isExact)
        validators = new Map()
      }
      found = ajv.compile({ $ref: `contract#/$defs/${name}` })
      validators.set(name, found)
      restartCheckTime()
    }
    this.#compiled[kind] = { ajv, validators }
    return found
  }
}

interface Compiled {
  readonly ajv: Ajv
  readonly validators: Map<string, Validator>
}

/** `isExact`: numbers are compared by their digits. */
function newAjv(schemas: ApiContract['schemas'], isExact: boolean): Ajv {
  const { default: Ajv2020, _ } = require('ajv/dist/2020') as {
    readonly default: new (options: object) => Ajv
    readonly _: CodeTemplate
  }
  const ajv = new Ajv2020({
    ...schemaOptions(withLimit),
    ...{ allErrors: true, validateSchema: false, formats: FORMATS },
    // Each reference is a function, so that the code is no longer than the document.
    inlineRefs: false,
  })
  addSchemaRules(ajv, _)
  if (isExact) addExactRules(ajv, _)
  ajv.addSchema({ $id: 'contract', $defs: schemas })
  return ajv
}

function violationOf({ keyword, message = 'is not valid', params }: AjvError, place: string, inner: string): Violation {
  const at = inner === '' ? place : `${place} ${clipped(inner, PLACE_MAX)}`
  return { place: at, rule: clipped(ruleOf(keyword, message, params), RULE_MAX) }
}

/** The message of Ajv, with what it leaves out. */
function ruleOf(keyword: string, message: string, params: AjvError['params']): string {
  if (keyword === 'enum') return `must be one of ${(params.allowedValues as readonly unknown[]).map(shown).join(', ')}`
  if (keyword === 'const') return `must be ${shown(params.allowedValue)}`
  if (keyword === 'false schema') return 'must not be there'
  const name = params.additionalProperty ?? params.unevaluatedProperty ?? params.propertyName
  return typeof name === 'string' ? `${message}: ${shown(name)}` : message
}

function shown(value: unknown): string {
  return clipped(JSON.stringify(value), NAME_MAX)
}

/** Without control characters; at most `max` characters. */
export function clipped(text: string, max: number): string {
  const plain = text.replaceAll(/\p{Cc}+/gu, ' ')
  return plain.length <= max ? plain : `${plain.slice(0, max - 1)}…`
}

/**
 * JSON Schema of operators (drafts 04 to 2020-12). Patterns match in linear time, because clients choose texts.
 */
import { createRequire } from 'node:module'
import { addExactRules, withDigits, withExactNumbers } from './exact-numbers.ts'
import { addSchemaRules, type CodeTemplate, refuseUncheckedProperty, runCheck, schemaOptions } from './schema-rules.ts'
import type { Json } from './value.ts'

const require = createRequire(import.meta.url)

interface SchemaError {
  readonly instancePath: string
  readonly message?: string
}

interface Validator {
  (value: unknown): boolean
  readonly errors?: readonly SchemaError[] | null
}

type AjvClass = new (
  options: object,
) => {
  compile(schema: unknown): Validator
  addMetaSchema(schema: unknown): unknown
  removeKeyword(keyword: string): unknown
  addKeyword(keyword: object): unknown
}

/** The first violation, as a JSON Pointer and a reason; '' where the value is valid. */
export type SchemaCheck = (value: Json) => string

/** Throws where the text is no schema, refers to another document, or has a rule that no check would see. */
export function compileSchema(text: string): SchemaCheck {
  const schema = JSON.parse(text) as Json
  refuseUncheckedProperty(schema)
  const dialect = typeof schema === 'object' && schema !== null && '$schema' in schema ? String(schema.$schema) : ''
  const ofDoubles = ajvOf(dialect, false).compile(schema)
  let ofDigits: Validator | undefined
  return value => {
    const exact = withDigits(value)
    if (exact !== null) ofDigits ??= ajvOf(dialect, true).compile(schema)
    const validate = exact === null ? ofDoubles : ofDigits!
    const isValid = () => (exact === null ? validate(value) : withExactNumbers(exact, validate))
    if (runCheck(isValid)) return ''
    const [first] = validate.errors ?? []
    return `${first?.instancePath || '/'} ${first?.message ?? 'is not valid'}`
  }
}

/** Classes of ajv, by what their `$schema` holds. Draft 06 and others without a row are read as draft 07. */
const DIALECTS: readonly (readonly [dialect: RegExp, path: string])[] = [
  [/draft\/2020-12\b/, 'ajv/dist/2020'],
  [/draft\/2019-09\b/, 'ajv/dist/2019'],
  [/draft-04\b/, 'ajv-draft-04'],
]

/** `isExact`: numbers are compared by their digits. */
function ajvOf(dialect: string, isExact: boolean) {
  const path = DIALECTS.find(([pattern]) => pattern.test(dialect))?.[1] ?? 'ajv'
  const { default: Ajv, _ } = require(path) as { readonly default: AjvClass; readonly _: CodeTemplate }
  const ajv = new Ajv({ ...schemaOptions(), validateFormats: false })
  addSchemaRules(ajv, _)
  if (isExact) addExactRules(ajv, _)
  if (/draft-06\b/.test(dialect)) ajv.addMetaSchema(require('ajv/dist/refs/json-schema-draft-06.json'))
  return ajv
}

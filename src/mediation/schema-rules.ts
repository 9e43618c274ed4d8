/**
 * Rules for schemas of operators and of contracts, which hold for messages of clients: Ajv by itself takes names that
 * every object inherits for properties, calls functions that a client names, or needs quadratic time.
 */
import { compilePattern } from '../runtime/pattern.ts'

interface Keywords {
  removeKeyword(keyword: string): unknown
  addKeyword(keyword: object): unknown
}

/** Patterns of a schema: a part of the text must match (JSON Schema 2020-12 validation 6.3.3). */
const linearRegExp = Object.assign(
  (pattern: string) => {
    const compiled = compilePattern(pattern)
    // Ajv keeps one expression for each text of this kind.
    return { test: (text: string): boolean => compiled.test(text), toString: () => pattern }
  },
  { code: 'linearRegExp' },
)

/** Options of Ajv. `process`: a further change of the code that Ajv makes. */
export function schemaOptions(process: (code: string) => string = code => code): object {
  return {
    ...{ strict: false, logger: false, messages: true, multipleOfPrecision: 9 },
    // Otherwise every object has a `constructor`.
    ownProperties: true,
    code: { regExp: linearRegExp, process: (code: string) => process(withOwnProperties(code)) },
  }
}

/**
 * Names of evaluated properties are those of an object without a prototype. An object of another function is copied,
 * because Ajv adds names to it: what one message has evaluated would be evaluated in all further ones.
 */
function withOwnProperties(code: string): string {
  return code
    .replace(/!(props\d+)\[(key\d+)\]/g, '!Object.hasOwn($1,$2)')
    .replace(/(props\d+ = (?:props\d+ \|\| )?)\{\}/g, '$1Object.create(null)')
    .replace(
      /(props\d+ = )([\w.]+\.evaluated\.props)\b/g,
      '$1typeof $2 == "object" ? Object.assign(Object.create(null), $2) : $2',
    )
}

/** `_` of Ajv: a piece of code. */
export type CodeTemplate = (texts: TemplateStringsArray, ...codes: unknown[]) => unknown

/** Replaces the rules that compare values: these compare canonical texts, in linear time. */
export function addSchemaRules(ajv: Keywords, _: CodeTemplate): void {
  const rules = [
    {
      ...{ keyword: 'uniqueItems', type: 'array', schemaType: 'boolean' },
      error: { message: 'must not have equal items' },
      compile: (isUnique: boolean) => (items: readonly unknown[]) => !isUnique || areUnique(items),
    },
    {
      keyword: 'const',
      error: {
        message: 'must be equal to constant',
        params: ({ schemaCode }: { readonly schemaCode: unknown }) => _`{allowedValue: ${schemaCode}}`,
      },
      compile: (value: unknown) => isOneOf([value]),
    },
    {
      ...{ keyword: 'enum', schemaType: 'array' },
      error: {
        message: 'must be equal to one of the allowed values',
        params: ({ schemaCode }: { readonly schemaCode: unknown }) => _`{allowedValues: ${schemaCode}}`,
      },
      compile: (values: readonly unknown[]) => isOneOf(values),
    },
  ]
  for (const rule of rules) {
    ajv.removeKeyword(rule.keyword)
    ajv.addKeyword({ ...rule, errors: false })
  }
}

function isOneOf(values: readonly unknown[]): (value: unknown) => boolean {
  const scalars = new Set(values.filter(value => !isNested(value)))
  const texts = new Set(values.filter(isNested).map(canonicalText))
  return value => (isNested(value) ? texts.size > 0 && texts.has(canonicalText(value)) : scalars.has(value))
}

function areUnique(items: readonly unknown[]): boolean {
  if (items.length < 2) return true
  return new Set(items.map(canonicalText)).size === items.length
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Returns JSON in which properties are in order. */
function canonicalText(value: unknown): string {
  if (!isNested(value)) return JSON.stringify(value)
  return JSON.stringify(value, (_, inner: unknown) =>
    isNested(inner) && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
      : inner,
  )
}

/** Keywords whose members are names of properties. */
const BY_PROPERTY = new Set([
  'properties',
  'patternProperties',
  'dependencies',
  'dependentSchemas',
  'dependentRequired',
])
/** Keywords whose values are no schemas. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'example'])

/** Throws where a schema has a rule for a property `__proto__`: Ajv leaves out the rule. */
export function refuseUncheckedProperty(root: unknown): void {
  const pending: unknown[] = [root]
  for (let schema = pending.pop(); schema !== undefined; schema = pending.pop()) {
    if (!isNested(schema)) continue
    for (const [keyword, value] of Object.entries(schema)) {
      if (BY_PROPERTY.has(keyword) && isNested(value) && Object.hasOwn(value, '__proto__')) {
        throw new Error(`${keyword} has a rule for __proto__, which cannot be checked`)
      }
      if (!DATA.has(keyword)) pending.push(value)
    }
  }
}

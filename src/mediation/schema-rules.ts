/**
 * Rules for schemas of operators and of contracts, which hold for messages of clients: Ajv by itself takes names that
 * every object inherits for properties, calls functions that a client names, or needs quadratic time.
 */
import { compilePattern } from '../runtime/pattern.ts'
import { showLife } from '../runtime/signs-of-life.ts'
import { checkSteps, countLength, withinCheckTime, withSteps } from './schema-limits.ts'

export interface Keywords {
  removeKeyword(keyword: string): unknown
  addKeyword(keyword: object): unknown
}

/** Patterns of a schema: a part of the text must match (JSON Schema 2020-12 validation 6.3.3). */
const linearRegExp = Object.assign(
  (pattern: string) => {
    const compiled = compilePattern(pattern)
    // Ajv keeps one expression for each text of this kind.
    const test = (text: string): boolean => {
      countLength(text.length)
      return compiled.test(text)
    }
    return { test, toString: () => pattern }
  },
  { code: 'linearRegExp' },
)

/** Options of Ajv. `process`: a further change of the code that Ajv makes. */
export function schemaOptions(process: (code: string) => string = code => code): object {
  return {
    ...{ strict: false, logger: false, messages: true, multipleOfPrecision: 9 },
    // Otherwise every object has a `constructor`.
    ownProperties: true,
    code: { regExp: linearRegExp, process: (code: string) => compiled(withSteps(process(withOwnProperties(code)))) },
  }
}

/** Ajv makes a function of each schema that a reference names, and may make thousands with the first message. */
function compiled(code: string): string {
  showLife()
  return code
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

/**
 * Replaces the rules that compare values: these compare canonical texts, in linear time. Compiled code finds in `ajv`
 * what counts its steps.
 */
export function addSchemaRules(ajv: Keywords, _: CodeTemplate): void {
  Object.assign(ajv, { checkSteps })
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

/** Numbers of values, equal for equal ones: each object and list is read once, however many lists hold it. */
class CanonicalForms {
  readonly #numbers = new Map<string, number>()
  readonly #known = new Map<object, number>()

  textOf(value: unknown): string {
    return isNested(value) ? `#${this.#numberOf(value)}` : JSON.stringify(value)
  }

  #numberOf(value: object): number {
    const known = this.#known.get(value)
    if (known !== undefined) return known
    const text = Array.isArray(value) ? `[${value.map(item => this.textOf(item)).join()}]` : this.#membersOf(value)
    const number = this.#numbers.get(text) ?? this.#numbers.size
    this.#numbers.set(text, number)
    this.#known.set(value, number)
    return number
  }

  #membersOf(value: object): string {
    const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${this.textOf(member)}`).join()}}`
  }
}

/** Forms of the values of the check that runs; null between checks, because a message may change. */
let forms: CanonicalForms | null = null

/** Runs one check of one value. Throws LimitReached where it takes too long. */
export function runCheck<T>(check: () => T): T {
  try {
    return withinCheckTime(check)
  } finally {
    forms = null
  }
}

/** A canonical text of an item takes about the time in which a pattern reads so many characters. */
const CHARACTERS_PER_ITEM = 32

function areUnique(items: readonly unknown[]): boolean {
  if (items.length < 2) return true
  countLength(items.length * CHARACTERS_PER_ITEM)
  forms ??= new CanonicalForms()
  const own = forms
  return new Set(items.map(item => own.textOf(item))).size === items.length
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Returns JSON in which properties are in order. */
function canonicalText(value: unknown): string {
  if (!isNested(value)) return JSON.stringify(value)
  const text = JSON.stringify(value, (_, inner: unknown) =>
    isNested(inner) && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
      : inner,
  )
  countLength(text.length)
  return text
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

/** Schemas that a function of Ajv checks at most, so that a thread that compiles it shows signs of life in time. */
const NESTED_MAX = 10_000

/** Throws where a schema holds so many others, without those that references name, that it compiles too long. */
export function refuseLongSchema(root: unknown): void {
  let count = 0
  const pending: unknown[] = [root]
  for (let schema = pending.pop(); schema !== undefined; schema = pending.pop()) {
    if (!isNested(schema)) continue
    if (++count > NESTED_MAX) {
      throw new Error(`it holds more than ${NESTED_MAX} schemas (name some of them, and refer to them with $ref)`)
    }
    for (const [keyword, value] of Object.entries(schema)) {
      if (DATA.has(keyword) || keyword === 'xml') continue
      // The members of these are schemas, the object itself is none.
      for (const inner of BY_PROPERTY.has(keyword) && isNested(value) ? Object.values(value) : [value])
        pending.push(inner)
    }
  }
}

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

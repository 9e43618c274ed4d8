/** The kinds of faults that validation finds, and the places where it finds them. */
import { INVARIANTS } from './definition-table.ts'
import type { Issue, IssueCode, Severity } from './outcome.ts'

interface FaultKind {
  readonly severity?: Severity
  readonly code: IssueCode
  readonly text: string
}

const KINDS = {
  'no-object': { code: 'structure', text: 'A resource is a JSON object' },
  'no-type': { code: 'required', text: 'The resource has no resourceType' },
  'unknown-type': { code: 'structure', text: 'R4 has no such resource type' },
  'type-mismatch': { code: 'value', text: 'The resource has another type than is expected here' },
  'unknown-element': { code: 'structure', text: 'R4 does not define this element here' },
  'several-types': { code: 'structure', text: 'An element with a choice of types has several values' },
  list: { code: 'structure', text: 'An element that repeats is a JSON array' },
  'no-list': { code: 'structure', text: 'An element that does not repeat is no JSON array' },
  empty: { code: 'structure', text: 'Empty objects, arrays and strings are left out' },
  null: { code: 'structure', text: 'null stands only in an array of primitive values, beside an extension' },
  shadow: { code: 'structure', text: 'The arrays of values and of their extensions do not fit together' },
  'json-type': { code: 'structure', text: 'The value has another JSON type than its element' },
  'missing-element': { code: 'required', text: 'A mandatory element is missing' },
  value: { code: 'value', text: 'The value does not have the form of its data type' },
  code: { code: 'code-invalid', text: 'The code is not in the value set that is required here' },
  depth: { code: 'too-long', text: 'The resource has too many levels' },
  'element-id': { code: 'invariant', text: 'The id of an element is unique within the resource' },
  'reference-target': {
    code: 'structure',
    text: 'The reference points to a resource of a type that is not allowed here',
  },
  'reference-type': { code: 'invariant', text: 'Type and target of the reference are not consistent' },
  'reference-form': {
    ...{ severity: 'warning', code: 'value' },
    text: 'A reference is a relative URL (Type/id), an absolute URL, or # and the id of a contained resource',
  },
  'sampled-data': { code: 'value', text: 'Sampled data are decimals, E, L and U, separated by single spaces' },
  'full-url': { code: 'invariant', text: 'A fullUrl is absolute and consistent with the id of its resource' },
  'ele-1': { code: 'invariant', text: 'All FHIR elements must have a @value or children' },
  xhtml: { code: 'value', text: 'The narrative is no div of XHTML' },
} as const satisfies Record<string, FaultKind>

type Kind = keyof typeof KINDS

/** Issues of one validation: further ones are counted as one note. */
const ISSUES_MAX = 100
/** Names that stand in a FHIRPath as they are; others are put in backticks. */
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
const NAME_MAX = 64

/** Collects faults, each with the FHIRPath of the element where the walk stands. */
export class ValidationFaults {
  readonly #issues: Issue[] = []
  readonly #path: (string | number)[] = []

  /** True: further faults change nothing. */
  get isFull(): boolean {
    return this.#issues.length > ISSUES_MAX
  }

  get issues(): readonly Issue[] {
    return this.#issues
  }

  enter(step: string | number): void {
    this.#path.push(step)
  }

  leave(): void {
    this.#path.pop()
  }

  /** The steps of the walk, for a fault that is known later. */
  place(): readonly (string | number)[] {
    return [...this.#path]
  }

  add(kind: Kind, diagnostics = '', place: readonly (string | number)[] = this.#path): void {
    const { code, text, ...more } = KINDS[kind]
    this.#push({ severity: 'error', ...more, code, detail: kind, text, diagnostics, expression: fhirPath(place) })
  }

  /** A child of the element where the walk stands. */
  addAt(step: string, kind: Kind, diagnostics = ''): void {
    this.add(kind, diagnostics, [...this.#path, step])
  }

  /** A rule of the definitions. */
  addInvariant(key: string, diagnostics = '', place: readonly (string | number)[] = this.#path): void {
    const { severity, text } = INVARIANTS.get(key)!
    this.#push({ severity, code: 'invariant', detail: key, text, diagnostics, expression: fhirPath(place) })
  }

  #push(issue: Issue): void {
    if (this.#issues.length < ISSUES_MAX) this.#issues.push(issue)
    else if (this.#issues.length === ISSUES_MAX) {
      const text = `The resource has more than ${ISSUES_MAX} faults; only the first are listed`
      this.#issues.push({ severity: 'information', code: 'incomplete', detail: 'more-faults', text })
    }
  }
}

function fhirPath(place: readonly (string | number)[]): string {
  let path = ''
  for (const step of place) {
    if (typeof step === 'number') path += `[${step}]`
    else path += `${path === '' ? '' : '.'}${PLAIN_NAME.test(step) ? step : quotedName(step)}`
  }
  return path
}

function quotedName(name: string): string {
  const cut = name.length > NAME_MAX ? `${name.slice(0, NAME_MAX)}…` : name
  return `\`${cut.toWellFormed().replace(/[\0-\x1f`\\]/g, '?')}\``
}

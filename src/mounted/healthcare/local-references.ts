/**
 * References (R4, references.html): to which type they point, and within one resource the rules of contained resources
 * (ref-1, dom-2 to dom-5), which are known only at its end.
 */
import { RESOURCE_TYPES } from './definition-table.ts'
import { isObject, type JsonObject } from './json-text.ts'
import { shown } from './outcome.ts'
import { isId } from './primitives.ts'
import type { ValidationFaults } from './validation-faults.ts'

type Place = readonly (string | number)[]

interface LocalReference {
  /** `#` and the id of a contained resource, or `#` alone. */
  readonly text: string
  readonly place: Place
  /** Types that it may point to; [] for any. */
  readonly targets: readonly string[]
  /** The contained resource that has it; null: the resource itself. */
  readonly from: ContainedResource | null
}

export interface ContainedResource {
  readonly resource: JsonObject
  readonly place: Place
}

const ABSOLUTE = /^[A-Za-z][A-Za-z0-9+.-]*:/

/** References within one resource, which begin with `#`. */
export class LocalReferences {
  readonly contained: ContainedResource[] = []
  readonly #references: LocalReference[] = []
  /** Text of every reference, canonical, uri and url that begins with `#`, of contained resources too. */
  readonly #texts = new Set<string>()
  /** Contained resources that refer to their container. */
  readonly #referring = new Set<ContainedResource>()

  addText(text: string): void {
    this.#texts.add(text)
  }

  addReference(reference: LocalReference): void {
    this.#references.push(reference)
    this.#texts.add(reference.text)
    if (reference.text === '#' && reference.from !== null) this.#referring.add(reference.from)
  }

  /** Reports what does not fit, when the whole resource has been read. */
  check(faults: ValidationFaults): void {
    const byId = new Map(this.contained.map(contained => [`#${String(contained.resource.id)}`, contained]))
    for (const { text, place, targets, from } of this.#references) {
      const target = byId.get(text)
      if (target === undefined && !(text === '#' && from !== null)) {
        faults.addInvariant('ref-1', `${shown(text)} is the id of no contained resource`, place)
      }
      const type = target?.resource.resourceType
      if (typeof type === 'string' && targets.length > 0 && !targets.includes(type)) {
        faults.add('reference-target', `${type} is none of ${targets.join(', ')}`, place)
      }
    }
    for (const contained of this.contained) this.#checkContained(contained, faults)
  }

  #checkContained(contained: ContainedResource, faults: ValidationFaults): void {
    const { resource, place } = contained
    const { id, meta } = resource
    const isReferred = typeof id === 'string' && this.#texts.has(`#${id}`)
    if (!isReferred && !this.#referring.has(contained)) faults.addInvariant('dom-3', 'nothing refers to it', place)
    if (Object.hasOwn(resource, 'contained')) faults.addInvariant('dom-2', '', place)
    if (!isObject(meta)) return
    if (meta.versionId !== undefined || meta.lastUpdated !== undefined) faults.addInvariant('dom-4', '', place)
    if (meta.security !== undefined) faults.addInvariant('dom-5', '', place)
  }
}

/** The type that a URL names: `Type/id`, also absolute and with a version; '' where it names none. */
export function typeOfReference(text: string): string {
  const [path] = text.split(/[?#]/, 1)
  const segments = path!.split('/')
  if (segments.at(-2) === '_history') segments.splice(-2)
  const [type, id] = segments.slice(-2)
  return type !== undefined && id !== undefined && RESOURCE_TYPES.has(type) && isId(id) ? type : ''
}

/** True if a reference has a form of the standard: absolute URL, local, or relative to the server. */
export function isReferenceForm(text: string): boolean {
  return ABSOLUTE.test(text) || text.startsWith('#') || typeOfReference(text) !== ''
}

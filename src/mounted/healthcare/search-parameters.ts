/** The search parameters of HealthcareService (R4, healthcareservice.html#search and resource.html#search). */

type SearchType = 'token' | 'reference' | 'string' | 'date' | 'uri'

/** Shape of the elements that a parameter reads. */
type SearchedShape =
  | 'CodeableConcept'
  | 'Identifier'
  | 'Coding'
  | 'Reference'
  | 'boolean'
  | 'id'
  | 'string'
  | 'instant'
  | 'uri'

export interface SearchParameter {
  readonly name: string
  readonly type: SearchType
  /** Stable: rows and bits of the index are numbered by it. */
  readonly number: number
  readonly shape: SearchedShape
  /** Names of the elements from the resource to the value. */
  readonly path: readonly string[]
  /** Resource type that a reference names; '' for other types of parameters. */
  readonly target: '' | 'Location' | 'Endpoint' | 'Organization'
  readonly isRepeated: boolean
}

const MODIFIERS: Readonly<Record<SearchedShape, readonly string[]>> = {
  CodeableConcept: ['missing', 'not', 'text'],
  Identifier: ['missing', 'not', 'text', 'of-type'],
  Coding: ['missing', 'not', 'text'],
  Reference: ['missing', 'identifier'],
  boolean: ['missing', 'not'],
  id: ['missing', 'not'],
  string: ['missing', 'exact', 'contains'],
  instant: ['missing'],
  uri: ['missing', 'above', 'below'],
}

const TYPES: Readonly<Record<SearchedShape, SearchType>> = {
  CodeableConcept: 'token',
  Identifier: 'token',
  Coding: 'token',
  Reference: 'reference',
  boolean: 'token',
  id: 'token',
  string: 'string',
  instant: 'date',
  uri: 'uri',
}

type Row = readonly [
  name: string,
  number: number,
  shape: SearchedShape,
  path: string,
  cardinality: '1' | '*',
  target?: SearchParameter['target'],
]

const ROWS: readonly Row[] = [
  ['active', 1, 'boolean', 'active', '1'],
  ['characteristic', 2, 'CodeableConcept', 'characteristic', '*'],
  ['coverage-area', 3, 'Reference', 'coverageArea', '*', 'Location'],
  ['endpoint', 4, 'Reference', 'endpoint', '*', 'Endpoint'],
  ['identifier', 5, 'Identifier', 'identifier', '*'],
  ['location', 6, 'Reference', 'location', '*', 'Location'],
  ['name', 7, 'string', 'name', '1'],
  ['organization', 8, 'Reference', 'providedBy', '1', 'Organization'],
  ['program', 9, 'CodeableConcept', 'program', '*'],
  ['service-category', 10, 'CodeableConcept', 'category', '*'],
  ['service-type', 11, 'CodeableConcept', 'type', '*'],
  ['specialty', 12, 'CodeableConcept', 'specialty', '*'],
  ['_id', 13, 'id', 'id', '1'],
  ['_lastUpdated', 14, 'instant', 'meta.lastUpdated', '1'],
  ['_profile', 15, 'uri', 'meta.profile', '*'],
  ['_security', 16, 'Coding', 'meta.security', '*'],
  ['_source', 17, 'uri', 'meta.source', '1'],
  ['_tag', 18, 'Coding', 'meta.tag', '*'],
]

export const SEARCH_PARAMETERS: ReadonlyMap<string, SearchParameter> = new Map(
  ROWS.map(([name, number, shape, path, cardinality, target = '']) => {
    const isRepeated = cardinality === '*'
    return [name, { name, type: TYPES[shape], number, shape, path: path.split('.'), target, isRepeated }]
  }),
)

/** Modifiers without those that name a type. */
export function modifiersOf({ shape }: SearchParameter): readonly string[] {
  return MODIFIERS[shape]
}

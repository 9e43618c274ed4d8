/**
 * A project of the type GRAPHQL: its schema, the operations that clients may ask for, and the complexity of fields.
 * Requests are POST or GET, and opening a WebSocket connection is a GET; the operations decide who may send them.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Diagnostics } from '../config/diagnostics.ts'
import { readSource } from '../config/source-file.ts'
import { graphqlLibrary } from '../mediation/graphql/graphql-library.ts'
import { QUERY_SEQUENCE, querySequence } from '../mediation/graphql/graphql-sequence.ts'
import type { ResourceDefinition } from './api-definition.ts'
import { readGraphqlOperations } from './operations.ts'
import type { OwnSteps } from './project-mediation.ts'
import { YamlFile } from './yaml-file.ts'

/** Files of such a project, of which each change is noticed. */
export const GRAPHQL_FILES = ['Definitions/schema.graphql', 'Definitions/graphql-complexity.yaml']
const [SCHEMA, COMPLEXITY] = GRAPHQL_FILES as [string, string]
const INTROSPECTION = ['data', 'graphqlIntrospection']
const COMPLEXITY_MAX = 1_000_000

export function isGraphql(file: YamlFile): boolean {
  return file.optional(['data', 'type']).toUpperCase() === 'GRAPHQL'
}

interface GraphqlProject {
  readonly resources: readonly ResourceDefinition[]
  readonly steps: OwnSteps
}

/** Errors go to `found` and to the file. */
export function readGraphql(file: YamlFile, folder: string, found: Diagnostics): GraphqlProject {
  const operations = readGraphqlOperations(file)
  const source = readSource(join(folder, SCHEMA))
  if (source?.error !== undefined) found.errors.push(source.error)
  else if (source === undefined) file.error(['data', 'type'], 'GRAPHQL', 'there is no schema', `add ${SCHEMA}`)
  const schema = source?.error === undefined ? (source?.text ?? '') : ''
  if (schema !== '') checkSchema(schema, source!.label, operations, file, found)
  const complexity = readComplexity(join(folder, COMPLEXITY), found)
  const allowsIntrospection = file.flag(INTROSPECTION, true)
  const isOpen = operations.every(({ authType }) => authType === 'None')
  const common = {
    template: '/*',
    authType: isOpen ? 'None' : 'Application & Application User',
    tier: 'Unlimited',
    scopes: [],
  } as const
  return {
    resources: [
      { ...common, verb: 'GET' },
      { ...common, verb: 'POST' },
    ],
    steps: {
      plans: [querySequence({ schema, complexity, allowsIntrospection })],
      admission: { sequence: QUERY_SEQUENCE, operations },
    },
  }
}

function checkSchema(
  text: string,
  label: string,
  operations: readonly ResourceDefinition[],
  file: YamlFile,
  found: Diagnostics,
): void {
  const { buildSchema, GraphQLError, validateSchema } = graphqlLibrary()
  try {
    // Directives of other tools need no definition.
    const schema = buildSchema(text, { assumeValidSDL: true })
    for (const { message, locations } of validateSchema(schema)) {
      found.error(`${label}:${locations?.[0]?.line ?? 1}`, '', message, 'correct the schema')
    }
    const roots = {
      QUERY: schema.getQueryType(),
      MUTATION: schema.getMutationType(),
      SUBSCRIPTION: schema.getSubscriptionType(),
    }
    const unknown = operations.filter(({ verb, template }) => {
      return !Object.hasOwn(roots[verb as keyof typeof roots]?.getFields() ?? {}, template)
    })
    for (const { verb, template } of unknown.slice(0, 5)) {
      file.warn(['data', 'operations'], `${verb} ${template}`, 'is no field of the schema', 'no query can ask for it')
    }
  } catch (error) {
    const { message } = error as Error
    const line = error instanceof GraphQLError ? (error.locations?.[0]?.line ?? 1) : 1
    found.error(`${label}:${line}`, '', `is no GraphQL schema: ${message.slice(0, 200)}`, 'correct the schema')
  }
}

/** Complexity of fields by `Type.field`, as exports have it. */
function readComplexity(path: string, found: Diagnostics): Record<string, number> {
  const values: Record<string, number> = {}
  if (!existsSync(path)) return values
  const source = readSource(path)
  if (source?.error !== undefined) found.errors.push(source.error)
  if (source === undefined || source.error !== undefined) return values
  const file = new YamlFile(source.label, source.text)
  const list = file.has(['data', 'list']) ? ['data', 'list'] : ['list']
  const length = file.lengthOf(list)
  if (length === undefined)
    file.error(list, undefined, 'expected a list', 'write type, field and complexityValue of each')
  for (let item = 0; item < (length ?? 0); item++) {
    const at = [...list, item]
    const [type, field, value] = [
      file.text([...at, 'type']),
      file.text([...at, 'field']),
      file.text([...at, 'complexityValue']),
    ]
    if (value !== undefined && !(/^\d+$/.test(value) && Number(value) <= COMPLEXITY_MAX)) {
      file.error([...at, 'complexityValue'], value, `expected 0 to ${COMPLEXITY_MAX}`, 'write a whole number')
    } else values[`${type}.${field}`] = Number(value)
  }
  found.errors.push(...file.errors)
  return values
}

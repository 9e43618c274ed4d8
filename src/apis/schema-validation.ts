/** Validation against the OpenAPI document of a project (`data.enableSchemaValidation`). */
import { CONTRACT_SEQUENCE, contractSequence } from '../mediation/openapi/contract-sequence.ts'
import type { ResourceDefinition } from './api-definition.ts'
import { endlessOperations, readContract, shapeOfTemplate } from './open-api-contract.ts'
import type { OpenApiDocument } from './open-api-document.ts'
import type { OwnSteps } from './project-mediation.ts'
import type { YamlFile } from './yaml-file.ts'

const ASKS = ['data', 'enableSchemaValidation']
/** Types of APIs that an OpenAPI document does not describe. */
const OTHER_TYPES = ['WS', 'SSE', 'WEBSUB', 'WEBHOOK', 'ASYNC', 'GRAPHQL']

/** Null where the project does not ask for it. What keeps the document from being used is an error. */
export function readValidation(
  file: YamlFile,
  document: OpenApiDocument | undefined,
  resources: readonly ResourceDefinition[],
): OwnSteps | null {
  if (!file.flag(ASKS, false)) return null
  const type = file.optional(['data', 'type']).toUpperCase()
  if (OTHER_TYPES.includes(type)) {
    file.warn(ASKS, true, 'has no effect', `no OpenAPI document describes an API of the type ${type}`)
    return null
  }
  if (document === undefined) {
    file.error(
      ASKS,
      true,
      'there is no OpenAPI document to validate with',
      'add Definitions/swagger.yaml, or write false',
    )
    return null
  }
  // A document that declares the operations is validated anyway.
  if (file.has(['data', 'operations'])) document.validate()
  if (document.file.errors.length > 0) return null
  const contract = readContract(document)
  warnOfUnknown(document, contract.operations, resources)
  const names = [CONTRACT_SEQUENCE]
  const first = { request: names, response: names, unread: endlessOperations(contract, resources) }
  return { plans: [contractSequence(contract)], first }
}

/** Operations that the document lacks are refused. */
function warnOfUnknown(
  { file }: OpenApiDocument,
  operations: readonly { readonly method: string; readonly template: string }[],
  resources: readonly ResourceDefinition[],
): void {
  const known = new Set(operations.map(({ method, template }) => `${method} ${shapeOfTemplate(template)}`))
  const open = [...known].filter(each => each.endsWith('/*')).map(each => each.slice(0, -1))
  const isKnown = (method: string, template: string): boolean => {
    const own = `${method} ${shapeOfTemplate(template)}`
    return known.has(own) || open.some(start => `${own}/`.startsWith(start))
  }
  const isOpen = ({ verb, template }: ResourceDefinition) => verb === '*' || template.endsWith('/*')
  const missing = resources.filter(each => {
    const { verb, template } = each
    return !isOpen(each) && !isKnown(verb, template) && !(verb === 'HEAD' && isKnown('GET', template))
  })
  for (const { verb, template } of missing.slice(0, 5)) {
    file.warn(['paths'], undefined, `${verb} ${template}: not in the document`, 'every request is refused with 102560')
  }
}

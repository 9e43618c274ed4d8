/**
 * The step that validates messages against the OpenAPI document of their API (`enableSchemaValidation`): the first of
 * the request flow and of the response flow. No sequence file holds it.
 */
import { MediationFault } from '../mediation-fault.ts'
import { mediator } from '../mediator.ts'
import type { ApiContract, Violation } from './api-contract.ts'
import { CONTRACT_MEDIATOR, type ContractSettings } from './contract-sequence.ts'
import { MessageCheck } from './message-check.ts'

const INVALID_REQUEST = 102560
const INVALID_RESPONSE = 102561
/** Violations that are told; the further ones are counted. */
const TOLD_MAX = 20

export const validateContract = mediator<ContractSettings>({
  name: CONTRACT_MEDIATOR,
  attributes: [],
  elements: [],
  parse: (element, parser) =>
    parser.error(element, '', 'is no element of sequence files', 'set enableSchemaValidation in api.yaml'),
  needs: () => 'worker',
  compile: ({ contract }) => {
    let check: MessageCheck | undefined
    return message => {
      check ??= new MessageCheck(JSON.parse(contract) as ApiContract)
      const isResponse = message.isFromBackend
      const violations = isResponse ? check.response(message) : check.request(message)
      if (violations.length === 0) return true
      const direction = isResponse ? 'response' : 'request'
      throw new MediationFault({
        code: isResponse ? INVALID_RESPONSE : INVALID_REQUEST,
        message: `The ${direction} does not follow the OpenAPI document: ${listed(violations)}`,
        cause: `the ${direction} breaks ${violations.length} rules of the OpenAPI document`,
      })
    }
  },
})

function listed(violations: readonly Violation[]): string {
  const told = violations.slice(0, TOLD_MAX).map(({ place, rule }) => `${place} ${rule}`)
  const others = violations.length - told.length
  return `${told.join('; ')}${others === 0 ? '' : `; and ${others} more`}`
}

/**
 * The step that validates messages against the OpenAPI document of their API (`enableSchemaValidation`): the first of
 * the request flow and of the response flow. No sequence file holds it.
 */
import { MediationFault } from '../mediation-fault.ts'
import { mediator } from '../mediator.ts'
import { withinCheckTime } from '../schema-limits.ts'
import type { ApiContract } from './api-contract.ts'
import { CONTRACT_MEDIATOR, type ContractSettings } from './contract-sequence.ts'
import { VIOLATIONS_MAX } from './contract-schemas.ts'
import { MessageCheck } from './message-check.ts'

const INVALID_REQUEST = 102560
const INVALID_RESPONSE = 102561
/** Characters of the violations that are told; the further ones are counted. */
const TOLD_MAX = 16_384

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
      const violations = withinCheckTime(() => (isResponse ? check!.response(message) : check!.request(message)))
      if (violations.length === 0) return true
      // Two schemas of one value may have the same rule.
      const texts = [...new Set(violations.map(({ place, rule }) => `${place} ${rule}`))]
      const list = listed(texts, violations.length >= VIOLATIONS_MAX)
      const direction = isResponse ? 'response' : 'request'
      throw new MediationFault({
        code: isResponse ? INVALID_RESPONSE : INVALID_REQUEST,
        message: `The ${direction} does not follow the OpenAPI document: ${list}`,
        cause: `the ${direction} breaks ${texts.length} rules of the OpenAPI document`,
      })
    }
  },
})

/** `isCut`: the check has ended at its limit, so that the message may have more. */
function listed(violations: readonly string[], isCut: boolean): string {
  const told: string[] = []
  let room = TOLD_MAX
  for (const violation of violations) {
    room -= violation.length
    if (room < 0) break
    told.push(violation)
  }
  const others = violations.length - told.length
  if (others === 0) return told.join('; ')
  return `${told.join('; ')}; and ${isCut ? 'at least ' : ''}${others} more`
}

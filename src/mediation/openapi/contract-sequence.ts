/** The sequence that validates the messages of an API. */
import type { SequencePlan } from '../sequence-plan.ts'
import type { ApiContract } from './api-contract.ts'

/** Its only step, which no sequence file holds. */
export const CONTRACT_MEDIATOR = 'openApiContract'

export interface ContractSettings {
  /** JSON of an `ApiContract`: a text is quick to hand to threads. */
  readonly contract: string
}

/** Name of the sequence that holds the step. */
export const CONTRACT_SEQUENCE = '(OpenAPI contract)'

export function contractSequence(contract: ApiContract): SequencePlan {
  const settings: ContractSettings = { contract: JSON.stringify(contract) }
  return {
    name: CONTRACT_SEQUENCE,
    label: 'enableSchemaValidation',
    steps: [{ mediator: CONTRACT_MEDIATOR, line: 1, settings }],
    onError: '',
    requestFields: [],
    calls: [],
    isDefault: false,
  }
}

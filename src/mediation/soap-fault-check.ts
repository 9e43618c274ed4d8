/** FORCE_ERROR_ON_SOAP_FAULT: a SOAP Fault that a backend responds with is a fault of the message. Runs on workers. */
import { bodyFormatOf, isXmlFormat } from './formats/body-types.ts'
import { MediationFault } from './mediation-fault.ts'
import { mediator } from './mediator.ts'
import type { Message } from './message.ts'
import type { SequencePlan } from './sequence-plan.ts'
import { isSoapFault } from './soap.ts'
import { FORCE_ERROR_ON_SOAP_FAULT } from './transport-properties.ts'
import { textOf } from './value.ts'

/** ERROR_CODE of such a fault on the reference platform. */
const TYPE = '500000'

/** Throws MediationFault where the response is a SOAP Fault, and the request asks for a fault then. */
export function checkSoapFault(request: Message, response: Message): void {
  if (textOf(request.get('default', FORCE_ERROR_ON_SOAP_FAULT)) !== 'true') return
  if (!isXmlFormat(bodyFormatOf(textOf(response.get('transport', 'Content-Type'))))) return
  if (!isSoapFault(response.payload)) return
  const message = 'The endpoint has responded with a SOAP Fault'
  throw new MediationFault({ message, detail: TYPE, type: TYPE, cause: 'the endpoint has responded with a SOAP Fault' })
}

/** Checks the response to a request that the flow itself has sent. */
export const soapFaultCheck = mediator<null>({
  name: 'soapFaultCheck',
  attributes: [],
  elements: [],
  parse: () => null,
  needs: () => 'worker',
  compile: () => message => {
    if (message.isFromBackend) checkSoapFault(message, message)
    return true
  },
})

/** The first sequence of a response flow whose request flow sets the property. */
export const SOAP_FAULT_CHECK: SequencePlan = {
  name: '--soap-fault-check--',
  label: FORCE_ERROR_ON_SOAP_FAULT,
  steps: [{ mediator: 'soapFaultCheck', line: 1, settings: null }],
  onError: '',
  requestFields: [],
  calls: [],
  isDefault: false,
}

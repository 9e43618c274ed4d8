/** Global message handlers, which are not acted on, and the error format of AI APIs. */
import { inert, live, repeatedSection, required, section } from '../key.ts'
import { flag, text, list } from '../kinds.ts'

const HANDLERS = 'not built yet: message handlers of the operator'

/** Keys that stand above the first table of the file. */
export const topLevel = section(
  '',
  'Keys above the first table of the file.',
  {
    enabled_global_handlers: inert(
      list([], 'Names of the handlers that process every message, in this order.'),
      HANDLERS,
    ),
  },
  { roles: ['gateway-worker'] },
)

export const synapseHandlers = repeatedSection(
  'synapse_handlers',
  'A message handler.',
  {
    name: inert(required(text('', 'Name of the handler, for `enabled_global_handlers`.')), HANDLERS),
    class: inert(required(text('', 'Class of the handler.')), HANDLERS),
    enabled: inert(flag(true, 'Use the handler where `enabled_global_handlers` names it.'), HANDLERS),
  },
  { roles: ['gateway-worker'], alternativeForm: 'named' },
)

export const ai = section(
  'apim.ai',
  'APIs of AI models.',
  {
    custom_error_response_sequence: live(
      text(
        '',
        'Fault sequence of AI APIs, such as `_ai_error_response_`, whose response has `error` with code, type and ' +
          'message; empty: the fault sequences of other APIs.',
      ),
    ),
  },
  {
    roles: ['gateway-worker', 'api-publisher', 'api-devportal'],
  },
)

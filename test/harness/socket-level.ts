/** Socket level of this run: `SLUICE_LEVEL=streams npm test`. Tests that start programs load it without a gateway. */
export const LEVEL = process.env.SLUICE_LEVEL === 'streams' ? 'streams' : 'handles'

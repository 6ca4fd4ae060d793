//! The spanning tree of the transportation simplex: which cells are in the basis, what flows in
//! them, and the prices they imply. It knows nothing of floating-point numbers.
//!
//! Nodes `0..rows` are the supplies, nodes `rows..` the demands. The cell between a node and its
//! parent is stored at the node. Prices satisfy `price(row) + price(column) = cost` in every cell
//! of the tree.

/// The parent of the root, and the end of a list of children.
pub(super) const NONE: u32 = u32::MAX;

/// A rooted spanning tree over the rows and columns of a cost matrix.
#[derive(Debug, Default)]
pub(super) struct Tree {
    rows: usize,
    nodes: Vec<Node>,
    prices: Vec<i64>,
    pending: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    flow: u128,
    parent: u32,
    depth: u32,
    first_child: u32,
    previous: u32,
    next: u32,
}

const LONE: Node =
    Node { flow: 0, parent: NONE, depth: 0, first_child: NONE, previous: NONE, next: NONE };

impl Tree {
    /// Forgets everything and makes room for a problem of this shape, all nodes apart.
    pub(super) fn clear(&mut self, rows: usize, columns: usize) {
        self.rows = rows;
        self.nodes.clear();
        self.nodes.resize(rows + columns, LONE);
        self.prices.clear();
        self.prices.resize(rows + columns, 0);
    }

    /// Prices of the rows, then of the columns.
    pub(super) fn prices(&self) -> (&[i64], &[i64]) {
        self.prices.split_at(self.rows)
    }

    /// The cells of the tree: row, column, flow.
    pub(super) fn cells(&self) -> impl Iterator<Item = (usize, usize, u128)> + '_ {
        self.nodes.iter().enumerate().filter(|(_, node)| node.parent != NONE).map(|(at, node)| {
            let (row, column) = self.cell(at, node.parent as usize);
            (row, column, node.flow)
        })
    }

    /// Hangs a node that has no parent yet below another, with the flow of the cell between them.
    pub(super) fn attach(&mut self, child: usize, parent: usize, flow: u128) {
        let sibling = self.nodes[parent].first_child;
        if sibling != NONE {
            self.nodes[sibling as usize].previous = child as u32;
        }
        let node = &mut self.nodes[child];
        node.flow = flow;
        node.parent = parent as u32;
        node.previous = NONE;
        node.next = sibling;
        self.nodes[parent].first_child = child as u32;
    }

    /// Computes depths and prices from the root down, once all nodes are attached.
    pub(super) fn settle(&mut self, root: usize, cost: impl Fn(usize, usize) -> i64) {
        self.nodes[root].depth = 0;
        self.prices[root] = 0;
        self.pending.clear();
        self.pending.push(root as u32);
        while let Some(at) = self.pending.pop() {
            let mut child = self.nodes[at as usize].first_child;
            while child != NONE {
                let (row, column) = self.cell(child as usize, at as usize);
                self.prices[child as usize] = cost(row, column) - self.prices[at as usize];
                self.nodes[child as usize].depth = self.nodes[at as usize].depth + 1;
                self.pending.push(child);
                child = self.nodes[child as usize].next;
            }
        }
    }

    /// Brings a cell into the tree: flow is pushed round the cycle it closes until a cell of the
    /// cycle is empty, and that cell leaves. `reduced` is the cell's cost less its prices.
    pub(super) fn pivot(&mut self, row: usize, column: usize, reduced: i64) {
        let column = self.rows + column;
        let (join, leaving, pushed) = self.bottleneck(row, column);
        self.push(row, join, pushed, true);
        self.push(column, join, pushed, false);
        // Cells lose flow at rows on the row's side and at columns on the column's side, so the
        // leaving node itself tells on which side the tree is cut.
        let leaving_is_row = leaving < self.rows;
        if leaving_is_row {
            self.hang(row, column, leaving, pushed);
        } else {
            self.hang(column, row, leaving, pushed);
        }
        let top = if leaving_is_row { row } else { column };
        self.shift(top, reduced);
    }

    /// Where the two paths towards the root meet, and the cell of least flow among those that
    /// lose flow. Flows are never tied (see the module above), so which is taken first is moot.
    fn bottleneck(&self, row: usize, column: usize) -> (usize, usize, u128) {
        let (mut left, mut right) = (row, column);
        let (mut leaving, mut least) = (row, u128::MAX);
        while left != right {
            let (walker, loses) = if self.nodes[left].depth >= self.nodes[right].depth {
                (&mut left, true)
            } else {
                (&mut right, false)
            };
            let node = &self.nodes[*walker];
            if (*walker < self.rows) == loses && node.flow < least {
                (leaving, least) = (*walker, node.flow);
            }
            *walker = node.parent as usize;
        }
        (left, leaving, least)
    }

    /// Adds and subtracts the pushed flow in turn on the way up; `rows_lose` on the row's side.
    fn push(&mut self, from: usize, join: usize, pushed: u128, rows_lose: bool) {
        let mut at = from;
        while at != join {
            let is_row = at < self.rows;
            let node = &mut self.nodes[at];
            if is_row == rows_lose {
                node.flow -= pushed;
            } else {
                node.flow += pushed;
            }
            at = node.parent as usize;
        }
    }

    /// Turns the path from `top` up to `leaving` upside down and hangs it below `parent`.
    fn hang(&mut self, top: usize, parent: usize, leaving: usize, flow: u128) {
        let (mut at, mut above, mut carried) = (top, parent, flow);
        loop {
            let old = self.nodes[at];
            self.detach(at);
            self.attach(at, above, carried);
            if at == leaving {
                return;
            }
            (at, above, carried) = (old.parent as usize, at, old.flow);
        }
    }

    fn detach(&mut self, child: usize) {
        let Node { parent, previous, next, .. } = self.nodes[child];
        if previous == NONE {
            self.nodes[parent as usize].first_child = next;
        } else {
            self.nodes[previous as usize].next = next;
        }
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
    }

    /// Makes the prices below `top` agree with the new cell above it, and the depths with the
    /// new place. Within the subtree one kind of node gains what the other loses.
    fn shift(&mut self, top: usize, reduced: i64) {
        let top_is_row = top < self.rows;
        self.pending.clear();
        self.pending.push(top as u32);
        while let Some(at) = self.pending.pop() {
            let at = at as usize;
            let same_kind = (at < self.rows) == top_is_row;
            self.prices[at] += if same_kind { reduced } else { -reduced };
            let parent = self.nodes[at].parent as usize;
            self.nodes[at].depth = self.nodes[parent].depth + 1;
            let mut child = self.nodes[at].first_child;
            while child != NONE {
                self.pending.push(child);
                child = self.nodes[child as usize].next;
            }
        }
    }

    fn cell(&self, node: usize, parent: usize) -> (usize, usize) {
        if node < self.rows { (node, parent - self.rows) } else { (parent, node - self.rows) }
    }
}

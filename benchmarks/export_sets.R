# Export labelled data sets of R packages as CSV files for `real.py --extra FOLDER`.
#
#     apt-get install r-base-core r-cran-mclust r-cran-kernlab r-cran-rrcov \
#         r-cran-adegenet r-cran-dendextend r-cran-caret r-cran-kohonen \
#         r-cran-mlbench r-bioc-all r-bioc-hsmmsinglecell r-bioc-phyloseq r-bioc-destiny
#     Rscript benchmarks/export_sets.R FOLDER
#
# Each file has one row per object; its first column, `class`, holds the true labels.

folder <- commandArgs(TRUE)[1]
dir.create(folder, showWarnings = FALSE, recursive = TRUE)

save_set <- function(name, package, make) {
  if (!requireNamespace(package, quietly = TRUE)) {
    message(name, ": the R package ", package, " is missing")
    return(invisible())
  }
  set <- make()
  table <- data.frame(class = as.character(set$y), as.matrix(set$X))
  path <- file.path(folder, paste0(name, ".csv.gz"))
  write.csv(table, gzfile(path), row.names = FALSE)
}
get_data <- function(name, package) {
  place <- new.env()
  data(list = name, package = package, envir = place)
  get(name, envir = place)
}

save_set("banknote", "mclust", function() {
  d <- get_data("banknote", "mclust")
  list(X = d[, -1], y = d$Status)
})
save_set("thyroid", "mclust", function() {
  d <- get_data("thyroid", "mclust")
  list(X = d[, -1], y = d$Diagnosis)
})
save_set("musk", "kernlab", function() {
  d <- get_data("musk", "kernlab")
  list(X = d[, names(d) != "Class"], y = d$Class)
})
save_set("fruit", "rrcov", function() {
  d <- get_data("fruit", "rrcov")
  list(X = d[, -1], y = d$cultivar)
})
save_set("olitos", "rrcov", function() {
  d <- get_data("olitos", "rrcov")
  list(X = d[, names(d) != "grp"], y = d$grp)
})
save_set("fish", "rrcov", function() {
  d <- na.omit(get_data("fish", "rrcov"))
  list(X = d[, names(d) != "Species"], y = d$Species)
})
save_set("dhfr", "caret", function() {
  d <- get_data("dhfr", "caret")
  list(X = d[, -1], y = d$Y)
})
# Genes by samples; five samples of the test part are normal tissue, no tumour.
save_set("khan", "dendextend", function() {
  d <- get_data("khan", "dendextend")
  y <- c(as.character(d$train.classes), as.character(d$test.classes))
  known <- y %in% levels(d$train.classes)
  list(X = rbind(t(d$train), t(d$test))[known, ], y = y[known])
})
# Counts of alleles; a missing genotype gets the mean of its column.
save_set("microbov", "adegenet", function() {
  d <- get_data("microbov", "adegenet")
  list(X = adegenet::tab(d, NA.method = "mean"), y = adegenet::pop(d))
})
save_set("nancycats", "adegenet", function() {
  d <- get_data("nancycats", "adegenet")
  list(X = adegenet::tab(d, NA.method = "mean"), y = adegenet::pop(d))
})
# The thousand probes of largest variance.
save_set("all", "ALL", function() {
  d <- get_data("ALL", "ALL")
  X <- t(Biobase::exprs(d))
  keep <- order(-apply(X, 2, var))[1:1000]
  list(X = X[, keep], y = substr(as.character(d$BT), 1, 1))
})
# The two thousand genes of largest mean; hours since the medium was changed.
save_set("myoblasts", "HSMMSingleCell", function() {
  X <- t(get_data("HSMM_expr_matrix", "HSMMSingleCell"))
  keep <- order(-colMeans(X))[1:2000]
  list(X = X[, keep], y = get_data("HSMM_sample_sheet", "HSMMSingleCell")$Hours)
})
# Alleles that the year of an influenza virus goes with, and the region of a human.
save_set("influenza", "adegenet", function() {
  d <- get_data("H3N2", "adegenet")
  list(X = adegenet::tab(d, NA.method = "mean"), y = d$other$epid)
})
save_set("humans", "adegenet", function() {
  d <- get_data("eHGDP", "adegenet")
  X <- adegenet::tab(d, NA.method = "mean")
  keep <- order(-apply(X, 2, var))[1:2000]
  info <- d$other$popInfo
  list(X = X[, keep], y = info$Region[match(adegenet::pop(d), info$Label)])
})
# Shares of bacterial genera in the gut; the class is the sequencing technology.
save_set("enterotype", "phyloseq", function() {
  d <- get_data("enterotype", "phyloseq")
  list(X = t(as(phyloseq::otu_table(d), "matrix")),
       y = phyloseq::sample_data(d)$SeqTech)
})
# Single cells of mouse embryos by the number of cells of the embryo.
save_set("embryos", "destiny", function() {
  d <- get_data("guo", "destiny")
  list(X = t(Biobase::exprs(d)), y = d$num_cells)
})
# Nominal symptoms of soybean diseases as indicators.
save_set("soybean", "mlbench", function() {
  d <- na.omit(get_data("Soybean", "mlbench"))
  X <- do.call(cbind, lapply(d[, -1], function(v) {
    v <- droplevels(factor(v, ordered = FALSE))
    if (nlevels(v) > 1) sapply(levels(v), function(l) as.numeric(v == l))
  }))
  list(X = X, y = d$Class)
})
